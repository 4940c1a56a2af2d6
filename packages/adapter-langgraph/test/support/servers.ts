import { sharedServers } from "@twiceproof/test-servers";

export default sharedServers(["postgres"]);
