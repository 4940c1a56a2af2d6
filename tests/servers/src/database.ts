import { randomBytes } from "node:crypto";
import { isPostgres, query } from "./probe.ts";

export interface Database {
  readonly url: string;
  readonly name: string;
  /** Also while connections are open to it: they are ended, or fail. */
  drop(): Promise<void>;
}

/** A new database of a random name, `twiceproof_test_<hex>`, on the server at this address. */
export async function createDatabase(serverUrl: string): Promise<Database> {
  const name = `twiceproof_test_${randomBytes(8).toString("hex")}`;
  await query(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = name;
  return {
    url: url.href,
    name,
    drop: async () => {
      await query(serverUrl, `drop database if exists ${name}${isPostgres(serverUrl) ? " with (force)" : ""}`);
    },
  };
}
