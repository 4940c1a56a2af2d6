import { describe, expect, it } from "vitest";
import { TwiceproofError } from "../src/errors.ts";
import { errorResponse } from "../src/http.ts";
import { gate, notRun, until } from "./support/waiting.ts";
import { problem, world } from "./support/world.ts";

describe("an error as an HTTP answer", () => {
  it("tells a busy thread's holder, and no worker, thread or stack", async () => {
    const { tp, worker, record } = world();
    const { opened, open } = gate();
    const first = tp.withRun({ thread: "secret-thread", runId: "r1" }, () => opened);
    await until(async () => (await record("secret-thread", "thread").catch(() => null)) !== null);
    const busy = await problem(worker().withRun({ thread: "secret-thread", runId: "r2" }, notRun));
    const response = errorResponse(new Error("wrapped", { cause: busy }));
    expect(response?.status).toBe(409);
    expect(response?.headers.get("content-type")).toMatch(/^application\/json/);
    expect(Number(response?.headers.get("retry-after"))).toBe(Math.ceil((busy.retryAfterMs as number) / 1_000));
    const body = await response?.json();
    expect(body).toMatchObject({
      code: "THREAD_BUSY",
      retryAfterMs: busy.retryAfterMs,
      holder: { runId: "r1", liveness: "live", state: "claimed" },
    });
    const text = JSON.stringify(body);
    for (const hidden of ["secret", String(process.pid), "http.test", "    at "]) expect(text).not.toContain(hidden);
    const curt = await errorResponse(busy, { holder: false })?.json();
    expect(curt).not.toHaveProperty("holder");
    open();
    await first;
  });

  it("is 503 when the store or the worker cannot serve, 500 for a fault in the application, and none for strangers", async () => {
    const of = (code: TwiceproofError["code"], message = "at /var/lib/secret.db") =>
      errorResponse(new TwiceproofError(code, message));
    expect(of("STORE_UNAVAILABLE")?.status).toBe(503);
    expect(of("CLOSED")?.status).toBe(503);
    expect(of("IDENTITY_MISSING")?.status).toBe(500);
    expect(of("EFFECT_IN_DOUBT")?.status).toBe(409);
    expect(await of("STORE_NOT_A_DATABASE")?.text()).not.toContain("secret");
    expect(errorResponse(new Error("other"))).toBeUndefined();
    expect(errorResponse(undefined)).toBeUndefined();
  });
});
