export type { PostgresClient } from "./client.ts";
export { printMigrations } from "./migrate.ts";
export { type PostgresStoreOptions, postgresStore } from "./store.ts";
