import { ownServerFaults } from "./own-server.ts";

ownServerFaults("mariadb");
