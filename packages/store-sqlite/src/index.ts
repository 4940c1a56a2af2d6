export type { SqliteHandle } from "./database.ts";
export { sqliteStore } from "./store.ts";
