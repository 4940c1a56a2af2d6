import { readdirSync } from "node:fs";
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { ClaimRequest, Store } from "@twiceproof/core/store";
import { claimId, isTwiceproofError, randomId } from "@twiceproof/core/store";
import { ready, say, shuffled } from "@twiceproof/test-servers/worker";
import Database from "better-sqlite3";

/** What the tests let other processes do: `node worker.ts <task> <parameter>...`. */
const tasks: Readonly<Record<string, (...parameters: string[]) => Promise<void>>> = {
  /** Claims the same keys as everybody else, in batches and in an order of its own; says which it won. */
  async race(file, count) {
    const { sqliteStore } = await import("../src/index.ts");
    const store = sqliteStore(String(file));
    const requests = shuffled(Array.from({ length: Number(count) }, (_, index) => effect(`order:${index}`)));
    await ready();
    const won: string[] = [];
    for (let from = 0; from < requests.length; from += 10) {
      const batch = requests.slice(from, from + 10);
      const answers = await store.claim(batch);
      won.push(...batch.filter((_, index) => answers[index]?.answer === "won").map((request) => request.key));
    }
    await store.close();
    say(won);
  },

  /** Opens, and thereby creates and migrates, at the same moment as others. */
  async migrate(file) {
    const { sqliteStore } = await import("../src/index.ts");
    const store = sqliteStore(String(file));
    await ready();
    await store.migrate();
    say((await store.health()).warnings);
    await store.close();
  },

  /** Holds the write lock for so many milliseconds. */
  async lock(file, ms) {
    const db = new Database(file);
    await ready();
    db.exec("begin immediate");
    say("locked");
    setTimeout(() => {
      db.exec("commit");
      db.close();
    }, Number(ms));
  },

  /** Without the rights of root, which no permission binds. */
  async unprivileged(file) {
    const { sqliteStore } = await import("../src/index.ts");
    new Database(":memory:").close();
    if (process.getuid?.() === 0) process.setuid?.(65534);
    say(await failure(sqliteStore(String(file))));
  },

  /** better-sqlite3 is looked up from a folder that has none. */
  async driverless(file) {
    registerHooks({
      resolve: (specifier, context, next) =>
        specifier === "better-sqlite3"
          ? next(specifier, { ...context, parentURL: pathToFileURL(String(file)).href })
          : next(specifier, context),
    });
    const { sqliteStore } = await import("../src/index.ts");
    say(await failure(sqliteStore(String(file))));
  },

  /** Loads every module of the package anew, so many times, and uses each; says how many descriptors are open after each. */
  async reload(file, times) {
    registerHooks({
      resolve(specifier, context, next) {
        const resolved = next(specifier, context);
        const { search } = new URL(context.parentURL ?? "file:///");
        return specifier.startsWith("./") ? { ...resolved, url: resolved.url + search } : resolved;
      },
    });
    const descriptors: number[] = [];
    const modules = new Set<unknown>();
    for (let round = 0; round < Number(times); round++) {
      const { sqliteStore } = (await import(`../src/index.ts?round=${round}`)) as typeof import("../src/index.ts");
      modules.add(sqliteStore);
      await sqliteStore(String(file)).claim([effect(`order:${round}`)]);
      descriptors.push(readdirSync("/dev/fd").length);
    }
    say({ modules: modules.size, descriptors });
  },
};

async function failure(store: Store): Promise<unknown> {
  try {
    return await store.claim([effect("order:1")]);
  } catch (error) {
    return isTwiceproofError(error) ? { code: error.code, message: error.message } : String(error);
  }
}

function effect(key: string): ClaimRequest {
  return {
    id: claimId("test", "effect", key),
    attemptId: randomId(),
    namespace: "test",
    kind: "effect",
    key,
    name: "charge",
    scope: null,
    turn: null,
    runId: null,
    fingerprint: "1:same",
    holder: `worker-${process.pid}`,
    leaseMs: 60_000,
    seen: null,
    fence: null,
  };
}

const [task = "", ...parameters] = process.argv.slice(2);
await tasks[task]?.(...parameters);
