import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimId } from "../src/id.ts";
import { type StoreHarness, type StoreLaw, storeLaws } from "../src/laws.ts";
import { memoryStore } from "../src/memory-store.ts";
import type { ClaimRequest, Store } from "../src/store.ts";
import { type Mutant, mutants } from "./mutants.ts";
import { lineMutants } from "./mutants-line.ts";
import { stopMutants } from "./mutants-stop.ts";

type MakeStore = typeof memoryStore;

const files = ["machine", "ticket", "memory-store"] as const;
let directory: string;
let sources: Readonly<Record<Mutant["file"], string>>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mutants-"));
  const [machine = "", ticket = "", store = ""] = await Promise.all(
    files.map((file) => readFile(new URL(`../src/${file}.ts`, import.meta.url), "utf8")),
  );
  sources = { machine, ticket, "memory-store": store };
});

afterAll(() => rm(directory, { recursive: true }));

/** The memory store from a copy of its sources, with one line changed. */
async function build(name: string, mutant?: Mutant): Promise<MakeStore> {
  const copy = await mkdtemp(join(directory, `${name}-`));
  for (const file of files) {
    const changed = mutant?.file === file ? sources[file].replace(mutant.from, () => mutant.to) : sources[file];
    await writeFile(join(copy, `${file}.ts`), changed);
  }
  for (const file of ["page.ts", "errors.ts"])
    await copyFile(new URL(`../src/${file}`, import.meta.url), join(copy, file));
  return (await import(/* @vite-ignore */ pathToFileURL(join(copy, "memory-store.ts")).href)).memoryStore;
}

function harness(make: MakeStore, connect = (store: Store, _make: () => Store): Store => store): StoreHarness {
  let ahead = 0;
  const open = () => make({ now: () => Date.now() + ahead });
  const store = open();
  return {
    connect: async () => connect(store, open),
    expireLeases: async () => {
      ahead += 86_400_000;
    },
    close: async () => {},
  };
}

/** The laws that a store breaks. */
async function broken(start: () => StoreHarness): Promise<readonly StoreLaw[]> {
  const laws: StoreLaw[] = [];
  for (const law of storeLaws) await law.check(start()).catch(() => laws.push(law));
  return laws;
}

interface Breach {
  readonly number: number;
  readonly name: string;
  run(): Promise<readonly StoreLaw[]>;
}

const wrapped: readonly (Pick<Breach, "number" | "name"> & { connect(store: Store, open: () => Store): Store })[] = [
  { number: 1, name: "two connections share nothing", connect: (_, open) => open() },
  { number: 1, name: "looks first, and claims later", connect: claimsLater },
  { number: 1, name: "looks at the line first, and claims later", connect: claimsPastTheLine },
  {
    number: 0,
    name: "takes any text for a place",
    connect: (store) => ({ ...store, list: (query) => store.list(query).catch(() => ({ records: [] })) }),
  },
  {
    number: 2,
    name: "a lock and an effect of one key are one row",
    connect: (store) => aliased(store, ({ namespace, key }) => claimId(namespace, "effect", key)),
  },
  {
    number: 6,
    name: "case is folded",
    connect: (store) => aliased(store, ({ namespace, kind, key }) => claimId(namespace, kind, key.toLowerCase())),
  },
  {
    number: 6,
    name: "accents are composed",
    connect: (store) => aliased(store, ({ namespace, kind, key }) => claimId(namespace, kind, key.normalize())),
  },
  {
    number: 6,
    name: "trailing blanks are cut",
    connect: (store) => aliased(store, ({ namespace, kind, key }) => claimId(namespace, kind, key.trimEnd())),
  },
  {
    number: 6,
    name: "namespace and key run together",
    connect: (store) => aliased(store, ({ namespace, kind, key }) => claimId("", kind, namespace + key)),
  },
];

const breaches: readonly Breach[] = [
  ...[...mutants, ...lineMutants, ...stopMutants].map((mutant, index) => ({
    ...mutant,
    run: once(async () => {
      expect(sources[mutant.file].split(mutant.from), "the rule stands elsewhere in the source now").toHaveLength(2);
      const make = await build(String(index), mutant);
      return broken(() => harness(make));
    }),
  })),
  ...wrapped.map(({ connect, ...breach }) => ({
    ...breach,
    run: once(() => broken(() => harness(memoryStore, connect))),
  })),
];

describe("the laws notice a broken rule", () => {
  it("and nothing else: an unchanged copy keeps them all", async () => {
    const make = await build("unchanged");
    expect(await broken(() => harness(make))).toEqual([]);
  });

  it.each(breaches)("$number: $name", async ({ number, run }) => {
    expect((await run()).map((law) => law.number)).toContain(number);
  });

  it("and each law notices one of them", { timeout: 120_000 }, async () => {
    const idle = new Set(storeLaws);
    for (const { run } of breaches) for (const law of await run()) idle.delete(law);
    expect([...idle].map((law) => law.name)).toEqual([]);
  });
});

function once<T>(run: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= run());
}

/** The classic race: everybody finds the key free, and everybody believes to have won it. */
function claimsLater(store: Store): Store {
  return {
    ...store,
    async claim(requests) {
      const before = await store.get(requests.map(({ id }) => id));
      const results = await store.claim(requests);
      return results.map((result, index) => (before[index] === null ? { answer: "won", token: 1 } : result));
    },
  };
}

/** The same race at the line: nobody waits when it looks, and nobody is looked for when it claims. */
function claimsPastTheLine(store: Store): Store {
  const first = async (id: string) => (await store.line(id))[0]?.ticketId;
  return {
    ...store,
    async claim(requests) {
      const seen = await Promise.all(requests.map(({ id }) => first(id)));
      const now = await Promise.all(requests.map(({ id }) => first(id)));
      return store.claim(
        requests.map((request, index) => (seen[index] === undefined ? { ...request, ticketId: now[index] } : request)),
      );
    },
  };
}

const aliases = new Map<string, string>();

/** Keeps each row under another id than the one that was asked for. */
function aliased(store: Store, idOf: (request: ClaimRequest) => string): Store {
  const real = <T extends { readonly id: string }>(ref: T): T => ({ ...ref, id: aliases.get(ref.id) ?? ref.id });
  return {
    ...store,
    claim(requests) {
      for (const request of requests) aliases.set(request.id, idOf(request));
      return store.claim(
        requests.map((request) => ({ ...real(request), fence: request.fence && real(request.fence) })),
      );
    },
    renew: (renewals) => store.renew(renewals.map(real)),
    settle: (settlements) => store.settle(settlements.map(real)),
    abandon: (ref, reason) => store.abandon(real(ref), reason),
    resolve: (doubt, verdict, by) => store.resolve(real(doubt), verdict, by),
    get: (ids) => store.get(ids.map((id) => real({ id }).id)),
    history: (id) => store.history(real({ id }).id),
  };
}
