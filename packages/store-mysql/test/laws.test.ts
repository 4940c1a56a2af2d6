import { type StoreHarness, storeLaws } from "@twiceproof/core/testing";
import { createDatabase } from "@twiceproof/test-servers";
import { describeOn } from "@twiceproof/test-servers/vitest";
import { createConnection } from "mysql2";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { mysqlStore } from "../src/index.ts";
import { callbackPool, oddOptions, oddSession, oneConnection, promisePool, type Source } from "./support/connect.ts";

type Connect = (url: string) => Source | Promise<Source>;

function callbackConnection(uri: string): Source {
  const client = createConnection({ uri });
  return { client, end: () => client.promise().end() };
}

const sources: Readonly<Record<string, Connect>> = {
  "a pool with promises": (url) => promisePool(url),
  "a pool with callbacks, at read committed": (url) =>
    callbackPool(url, {}, "transaction isolation level read committed"),
  "a pool of one, at serializable": (url) =>
    promisePool(url, { connectionLimit: 1 }, "transaction isolation level serializable"),
  "a connection with promises": oneConnection,
  "a connection with callbacks": callbackConnection,
  "a pool with odd options and sessions": (url) => callbackPool(url, oddOptions, oddSession),
};

interface Harness extends StoreHarness {
  /** A law asks for several, and a server has only so many: they are ended with the law. */
  endSources(): Promise<void>;
}

/** Every store has a source of its own; `expireLeases` comes from outside of all of them. */
async function harnessOn(serverUrl: string, connect: Connect): Promise<Harness> {
  const database = await createDatabase(serverUrl);
  const outside = await oneConnection(database.url);
  let opened: Source[] = [];
  return {
    async connect() {
      const source = await connect(database.url);
      opened.push(source);
      const store = mysqlStore(source.client);
      await store.migrate();
      return store;
    },
    async expireLeases() {
      await outside.client.query("update twiceproof_claims set lease_until = 0 where state = 'claimed'");
      await outside.client.query("update twiceproof_line set lease_until = 0");
    },
    async endSources() {
      await Promise.all(opened.map((source) => source.end()));
      opened = [];
    },
    async close() {
      await outside.end();
      await database.drop();
    },
  };
}

describeOn(["mariadb", "mysql"], "the laws of a store", (server) => {
  describe.each(Object.entries(sources))("on %s", (_, connect) => {
    let harness: Harness;
    beforeAll(async () => {
      harness = await harnessOn(server.url, connect);
    });
    afterEach(() => harness.endSources());
    afterAll(() => harness.close());

    for (const law of storeLaws) it(`${law.number}: ${law.name}`, { timeout: 30_000 }, () => law.check(harness));
  });
});
