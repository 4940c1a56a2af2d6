import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startProxy, type TcpProxy } from "../src/proxy.ts";
import { type Client, connectTo, type Echo, startEcho } from "./support/echo.ts";

let echo: Echo;
let proxy: TcpProxy;
let client: Client;

beforeEach(async () => {
  echo = await startEcho();
  proxy = await startProxy(echo.address);
  client = await connectTo(proxy.port);
});

afterEach(async () => {
  client.destroy();
  await proxy.close();
  await echo.close();
});

test("passes both directions on, and counts who is connected", async () => {
  client.send("hello");
  await expect.poll(client.answers).toBe("hello");
  expect(proxy.connections).toBe(1);
  client.destroy();
  await expect.poll(() => proxy.connections).toBe(0);
});

test("puts itself into an address, and nothing else", () => {
  expect(proxy.url("postgresql://me:secret@db.example:5432/name?a=b")).toBe(
    `postgresql://me:secret@127.0.0.1:${proxy.port}/name?a=b`,
  );
  expect(proxy.url("mysql://me@db.example/name")).toBe(`mysql://me@127.0.0.1:${proxy.port}/name`);
});

test("cut resets who is connected, and lets new ones in", async () => {
  client.send("before");
  await expect.poll(client.answers).toBe("before");
  proxy.cut();
  await expect.poll(client.ended).toBe("reset");
  const next = await connectTo(proxy.port);
  next.send("after");
  await expect.poll(next.answers).toBe("after");
  next.destroy();
});

test("a cut on a request lets it through, and no answer back", async () => {
  const act = vi.fn((connection: { cut(): void }) => connection.cut());
  proxy.onRequest("insert into", act);
  client.send("select 1;");
  await expect.poll(client.answers).toBe("select 1;");
  // In two pieces: the text is found across them.
  client.send("inser");
  await expect.poll(echo.received).toBe("select 1;inser");
  client.send("t into t");
  await expect.poll(client.ended).toBe("reset");
  await expect.poll(echo.received).toBe("select 1;insert into t");
  expect(client.answers()).not.toContain("t into");
  expect(act).toHaveBeenCalledTimes(1);
});

test("a cut on an answer comes when the server has answered", async () => {
  let received = "";
  proxy.onAnswer("commit", (connection) => {
    received = echo.received();
    connection.cut();
  });
  client.send("commit");
  await expect.poll(client.ended).toBe("reset");
  expect(received).toBe("commit");
  expect(client.answers()).toBe("");
});

test("a hook that was taken back does not act", async () => {
  const remove = proxy.onRequest("x", (connection) => connection.cut());
  remove();
  client.send("x");
  await expect.poll(client.answers).toBe("x");
  expect(client.ended()).toBeUndefined();
});

test("a hook may swallow the answers of one connection", async () => {
  proxy.onRequest("lost", (connection) => connection.swallow("answers"));
  const other = await connectTo(proxy.port);
  client.send("lost");
  await expect.poll(echo.received).toBe("lost");
  other.send("kept");
  await expect.poll(other.answers).toBe("kept");
  expect(client.answers()).toBe("");
  expect(client.ended()).toBeUndefined();
  other.destroy();
});

test("swallowed requests never arrive; pass takes it back", async () => {
  proxy.swallow("requests");
  client.send("lost,");
  const other = await connectTo(proxy.port);
  // Both connections were read in turn: when the second one's end is known, the first one's text is lost.
  other.destroy();
  await expect.poll(() => proxy.connections).toBe(1);
  proxy.pass();
  client.send("kept");
  await expect.poll(client.answers).toBe("kept");
  expect(echo.received()).toBe("kept");
});

test("swallowed answers were requests that arrived", async () => {
  proxy.swallow("answers");
  client.send("done");
  await expect.poll(echo.received).toBe("done");
  proxy.pass();
  client.send("next");
  await expect.poll(client.answers).toContain("next");
});

test("delays answers, in their order", async () => {
  proxy.delay(300);
  const start = performance.now();
  client.send("slow,");
  await expect.poll(echo.received).toBe("slow,");
  proxy.pass();
  client.send("fast");
  await expect.poll(client.answers).toBe("slow,fast");
  expect(performance.now() - start).toBeGreaterThan(290);
});

test("refuses new connections until it passes them again", async () => {
  proxy.refuse();
  const refused = await connectTo(proxy.port);
  await expect.poll(refused.ended).toBe("reset");
  client.send("still here");
  await expect.poll(client.answers).toBe("still here");
  proxy.pass();
  const next = await connectTo(proxy.port);
  next.send("back");
  await expect.poll(next.answers).toBe("back");
  next.destroy();
});

test("a server that is down is a reset", async () => {
  await echo.close();
  const lost = await connectTo(proxy.port);
  await expect.poll(lost.ended).toBe("reset");
});

test("close ends everything", async () => {
  await proxy.close();
  await expect.poll(client.ended).toBeDefined();
  await expect(connectTo(proxy.port)).rejects.toThrow("ECONNREFUSED");
  proxy = await startProxy(echo.address);
});
