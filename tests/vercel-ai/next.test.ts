import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createTwiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import { findChromium } from "@twiceproof/test-servers";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { endings } from "./support/endings.ts";
import { build, countTimers, example, folder, importAlone, start } from "./support/example.ts";
import { openPaymentApi, type PaymentApi } from "./support/payment-api.ts";
import { atEnd } from "./support/processes.ts";
import { copyOfExample, look, reload } from "./support/reload.ts";

const reloads = 20;
const atBuild = folder(afterAll);
beforeAll(() => build({ DATABASE: join(atBuild, "app.db") }));

test("a build creates no database", () => {
  expect(readdirSync(atBuild)).toEqual([]);
});

test.for([
  ["lib/app.ts", "app"],
  [".next/server/app/api/chat/route.js", "routeModule"],
] as const)("to import %s opens no file and starts no timer", async ([module, exported]) => {
  const { before, after, exports } = await importAlone(join(example, module), { DATABASE: join(atBuild, "app.db") });
  expect(exports).toContain(exported);
  // Files that Node had open itself may be closed by now.
  expect(after).toEqual({ ...before, files: Math.min(after.files, before.files) });
  expect(readdirSync(atBuild)).toEqual([]);
});

test("1: two people press Approve in two tabs on two servers: both see the one charge", {
  // A machine without Chromium installs it first.
  timeout: 600_000,
}, async ({ onTestFinished }) => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const api = await openPaymentApi(onTestFinished);
  const env = { DATABASE: join(folder(onTestFinished), "app.db"), PAYMENT_API: api.url };
  const servers = await Promise.all([start("start", onTestFinished, env), start("start", onTestFinished, env)]);
  const [one, two] = servers.map(({ url }) => url) as [string, string];

  const tabs = await browser.newContext();
  tabs.setDefaultTimeout(90_000);
  const first = await tabs.newPage();
  await first.goto(one);
  await first.getByRole("textbox").fill("Charge order B-52, 7 dollars");
  await first.getByRole("button", { name: "Send" }).click();
  await first.getByRole("button", { name: "Approve" }).waitFor();
  const second = await tabs.newPage();
  const stale = await tabs.newPage();
  const { pathname } = new URL(first.url());
  await Promise.all([second, stale].map((page) => page.goto(two + pathname)));

  await Promise.all([first, second].map(approve));
  const receipts = await Promise.all([first, second].map(receipt));
  await approve(stale);
  receipts.push(await receipt(stale));
  const [charge, ...more] = await api.charges("B-52");
  expect(more).toEqual([]);
  expect(receipts).toEqual(Array(3).fill(`Receipt ${charge?.id}`));
  // And whoever opens the chat later sees the same.
  await stale.reload();
  expect(await receipt(stale)).toBe(`Receipt ${charge?.id}`);
  expect(await stale.getByText("Done.").count()).toBe(1);
});

test("a page that is loaded in mid-run shows the rest, and one that is refused says why", {
  timeout: 600_000,
}, async ({ onTestFinished }) => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const api = await openPaymentApi(onTestFinished);
  const DATABASE = join(folder(onTestFinished), "app.db");
  const { url } = await start("start", onTestFinished, { DATABASE, PAYMENT_API: api.url });
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  await page.goto(url);
  await page.getByRole("textbox").fill("Charge order C-31, 9 dollars");
  await page.getByRole("button", { name: "Send" }).click();
  await api.setBusy("C-31", true);
  await approve(page);
  await api.charged("C-31", 1);
  await page.reload();
  await page.getByText("approval-responded").waitFor();
  await api.setBusy("C-31", false);
  const [charge] = await api.charges("C-31");
  expect(await receipt(page)).toBe(`Receipt ${charge?.id}`);

  // As many as may wait for this chat do.
  const tp = createTwiceproof({ store: sqliteStore(DATABASE) });
  const stop = new AbortController();
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const thread = new URL(page.url()).pathname.replace("/chat/", "");
  const run = { thread, onBusy: "wait", maxWaitMs: 600_000, signal: stop.signal } as const;
  const runs = [tp.withRun({ thread }, () => end)];
  onTestFinished(async () => {
    stop.abort();
    resolve();
    await Promise.allSettled(runs);
    await tp.close();
  });
  await vi.waitFor(async () => expect(await tp.threads.get(thread)).not.toBe(null));
  for (let waiting = 0; waiting < 10; waiting++) runs.push(tp.withRun(run, () => undefined));
  await vi.waitFor(async () => expect(await tp.threads.get(thread)).toMatchObject({ queueDepth: 10 }));
  await page.getByRole("button", { name: "Send" }).click();
  await expect
    .poll(() => page.locator("p[role=alert]").textContent())
    .toBe("As many runs as may wait for this thread do.");
});

describe("however a run ends", () => {
  const onEnd = atEnd();
  const file = join(folder(onEnd), "app.db");
  let payments: PaymentApi;
  let url: string;
  let failing: string;
  const another = () => start("start", onEnd, { DATABASE: file, PAYMENT_API: payments.url });
  beforeAll(async () => {
    payments = await openPaymentApi(onEnd);
    const env = { DATABASE: file, PAYMENT_API: payments.url, AI_MODEL: "none/none" };
    const servers = [another(), start("start", onEnd, env)];
    [url, failing] = (await Promise.all(servers)).map((server) => server.url) as [string, string];
  });
  endings("Next.js", () => ({ url, failing, start: another, file, payments }));
});

test("twenty hot reloads of a route leave as many files, sockets and timers as there were", {
  timeout: 240_000,
}, async ({ onTestFinished }) => {
  const copy = copyOfExample(onTestFinished);
  const api = await openPaymentApi(onTestFinished);
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

async function launch(): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await chromium.launch({ executablePath: await findChromium(), args });
}

function approve(page: Page): Promise<void> {
  return page.getByRole("button", { name: "Approve" }).click();
}

/** Once the reply is through. */
async function receipt(page: Page): Promise<string | null> {
  await page.getByText("Done.").waitFor();
  return await page.getByText(/^Receipt /).textContent();
}
