import { join } from "node:path";
import { expect, test } from "vitest";
import { buildPackages, countTimers, folder, start, startPaymentApi } from "./support/example.ts";
import { copyOfExample, look, reload } from "./support/reload.ts";

const reloads = 20;

test("twenty hot reloads of a route leave as many files, sockets and timers as there were", {
  timeout: 240_000,
}, async ({ onTestFinished }) => {
  await buildPackages();
  const copy = copyOfExample(onTestFinished);
  const api = await startPaymentApi(onTestFinished);
  const env = {
    DATABASE: join(folder(onTestFinished), "app.db"),
    PAYMENT_API: api.url,
    NODE_OPTIONS: `--import=${countTimers}`,
  };
  const { url } = await start("dev", onTestFinished, env, copy);

  // The first ones open what the server keeps.
  for (let version = 1; version <= 3; version++) await reload(copy, url, version);
  const before = await look(url);
  for (let version = 4; version <= reloads + 3; version++) await reload(copy, url, version);
  const after = await look(url);

  expect(after.pid).toBe(before.pid);
  expect(before.database.length).toBeGreaterThan(0);
  expect(after.database).toEqual(before.database);
  // The framework's own come and go; what leaks at each reload would be twenty.
  expect(after.files - before.files).toBeLessThan(reloads / 2);
  expect(after.sockets - before.sockets).toBeLessThan(reloads / 2);
  expect(after.timers - before.timers).toBeLessThan(reloads / 2);
  expect(after.resources.length - before.resources.length).toBeLessThan(reloads / 2);
});
