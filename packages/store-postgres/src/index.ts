export type { PostgresClient } from "./client.ts";
export type { PostgresListener } from "./listen.ts";
export { printMigrations } from "./migrate.ts";
export { type PostgresStoreOptions, postgresStore } from "./store.ts";
