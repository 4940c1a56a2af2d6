import { describeOn } from "@twiceproof/test-servers/vitest";
import { expect, it } from "vitest";
import { child } from "./support/child.ts";
import { effect, scratchUrl, storeOn, win } from "./support/scratch.ts";

describeOn(["mariadb", "mysql"], "a race", (server) => {
  it("gives each key one winner among processes", { timeout: 60_000 }, async () => {
    const url = await scratchUrl(server.url);
    const store = await storeOn(url);
    const children = [1, 2, 3, 4].map(() => child("race", url, "300"));
    for (const each of children) expect(await each.line()).toBe('"ready"');
    for (const each of children) each.go();
    const won = await Promise.all(children.map(async (each) => JSON.parse(await each.line()) as string[]));
    expect(won.flat().length).toBe(300);
    expect(new Set(won.flat()).size).toBe(300);
    const { records } = await store.list({ namespace: "test", limit: 500 });
    expect(records.map(({ token }) => token)).toEqual(won.flat().map(() => 1));
  });

  it("of lists of all kinds in all orders ends, and loses nothing", { timeout: 60_000 }, async () => {
    const url = await scratchUrl(server.url);
    const stores = await Promise.all([1, 2, 3, 4].map(() => storeOn(url)));
    const keys = Array.from({ length: 60 }, (_, index) => `order:${index}`);
    const refs = await Promise.all(keys.map((key) => win(stores[0] as (typeof stores)[0], effect(key))));
    const shuffled = () =>
      refs
        .map((ref) => [Math.random(), ref] as const)
        .sort(([a], [b]) => a - b)
        .map(([, ref]) => ref);
    await Promise.all(
      stores.flatMap((store, index) => [
        store.renew(shuffled().map((ref) => ({ ...ref, leaseMs: 90_000 }))),
        store.claim(shuffled().map(({ id }) => ({ ...effect("order:0"), id }))),
        index === 3 ? store.settle(shuffled().map((ref) => ({ ...ref, state: "completed", payload: null }))) : null,
        store.claim(keys.map((key) => effect(`new ${key}`)).sort(() => (index % 2 === 0 ? 1 : -1))),
      ]),
    );
    const records = await stores[0]?.get(refs.map(({ id }) => id));
    expect(records?.map((record) => record?.state)).toEqual(keys.map(() => "completed"));
    const fresh = await stores[0]?.get(keys.map((key) => effect(`new ${key}`).id));
    expect(fresh?.map((record) => record?.token)).toEqual(keys.map(() => 1));
  });
});
