import { ownServerFaults } from "./own-server.ts";

ownServerFaults("mysql");
