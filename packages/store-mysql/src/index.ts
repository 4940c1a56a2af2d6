export type { MysqlClient } from "./driver.ts";
export { printMigrations } from "./migrate.ts";
export type { MysqlStoreOptions } from "./prefix.ts";
export { mysqlStore } from "./store.ts";
