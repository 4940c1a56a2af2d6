export { findChromium } from "./chromium.ts";
export { createDatabase, type Database } from "./database.ts";
export { type PgBouncer, startPgBouncer } from "./pgbouncer.ts";
export { type ProxiedConnection, startProxy, type TcpProxy } from "./proxy.ts";
export { type OwnServer, type Server, type ServerName, ServerUnavailable, type StartOptions } from "./server.ts";
export { type ProvidedServer, sharedServers } from "./shared.ts";
export { startServer } from "./start.ts";
