import { execFileSync } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import tls from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  type Answer,
  answerOf,
  type Classify,
  classifyThrow,
  done,
  doneWithoutResult,
  NotExecuted,
  notDone,
  notExecuted,
  oneRequest,
  refused,
  spend,
  unknown,
} from "../src/classify.ts";
import { TwiceproofError } from "../src/errors.ts";
import { certificate } from "./certificate.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen<S extends Server>(server: S): Promise<number> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  return port;
}

async function thrownBy(request: () => Promise<unknown>): Promise<unknown> {
  return request().then(
    () => Promise.reject(new Error("it did not throw")),
    (error: unknown) => error,
  );
}

function post(options: https.RequestOptions, module: typeof http | typeof https = http): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const request = module.request({ host: "127.0.0.1", method: "POST", agent: false, ...options }, (response) => {
    response.resume().on("end", () => resolve(response.statusCode));
    response.on("error", reject);
  });
  request.on("error", reject);
  request.end("{}");
  return promise;
}

describe("what a body says by itself", () => {
  const wrong: Classify = () => "failed";

  test("notExecuted is released, refused is failed, with the author's words", () => {
    expect(classifyThrow(notExecuted("out of stock"), wrong)).toEqual({ state: "released", why: "out of stock" });
    expect(classifyThrow(refused("card declined"), () => "released")).toEqual({
      state: "failed",
      why: "card declined",
    });
    expect(notExecuted("x")).toMatchObject({ name: "NotExecuted", message: "x", why: "x" });
    expect(refused("x")).toMatchObject({ name: "Refused", message: "x", why: "x", answer: "refused" });
    expect(notExecuted("x")).toBeInstanceOf(Error);
  });

  test("another copy of the package is understood", async () => {
    vi.resetModules();
    const copy = await import("../src/classify.ts");
    expect(copy.NotExecuted).not.toBe(NotExecuted);
    expect(classifyThrow(copy.notExecuted("x"))).toEqual({ state: "released", why: "x" });
    expect(classifyThrow(copy.refused("x"))).toEqual({ state: "failed", why: "x" });
    expect(answerOf(copy.refused("x"))).toMatchObject({ answer: "refused", why: "x" });
  });

  test("as a cause or a member they prove nothing", () => {
    for (const inner of [notExecuted("x"), refused("x")]) {
      expect(classifyThrow(new Error("outer", { cause: inner }))).toEqual({ state: "in-doubt" });
      expect(classifyThrow(new AggregateError([inner]))).toEqual({ state: "in-doubt" });
      expect(classifyThrow(new Error("outer", { cause: inner }), oneRequest)).toEqual({ state: "in-doubt" });
    }
  });

  test("19: spent by an inner effect, they prove nothing, wherever they are", () => {
    for (const error of [notExecuted("x"), refused("x"), Object.assign(new Error("x"), { status: 402 })]) {
      expect(classifyThrow(error, oneRequest).state).not.toBe("in-doubt");
      spend(error);
      expect(classifyThrow(error, wrong)).toEqual({ state: "in-doubt" });
      expect(classifyThrow(new Error("outer", { cause: error }), wrong)).toEqual({ state: "in-doubt" });
      expect(classifyThrow(new AggregateError([new Error("a"), error]), wrong)).toEqual({ state: "in-doubt" });
    }
    for (const nothing of [undefined, null, "x", 1]) spend(nothing);
    expect(classifyThrow("x", wrong).state).toBe("failed");
  });

  test("19: an inner effect's error leaves the outer one in doubt, whatever classify says", () => {
    const inner = new TwiceproofError("STORE_UNAVAILABLE", "x", {
      cause: Object.assign(new Error("x"), { code: "ECONNREFUSED", syscall: "connect" }),
    });
    for (const error of [inner, new Error("outer", { cause: inner }), new AggregateError([inner])]) {
      for (const classify of [undefined, oneRequest, wrong, (() => "released") as Classify])
        expect(classifyThrow(error, classify)).toEqual({ state: "in-doubt" });
    }
  });
});

describe("classify", () => {
  const secret = new Error("card 4242 at 10.0.0.1");

  test("without one every throw is in doubt", () => {
    const refusedConnection = Object.assign(new Error("x"), { code: "ECONNREFUSED", syscall: "connect" });
    for (const error of [secret, "text", undefined, null, 42, { status: 400 }, refusedConnection])
      expect(classifyThrow(error)).toEqual({ state: "in-doubt" });
  });

  test("its word is taken, with a reason that is fixed", () => {
    expect(classifyThrow(secret, () => "released")).toEqual({ state: "released", why: "It was not sent." });
    expect(classifyThrow(secret, () => "failed")).toEqual({ state: "failed", why: "The outside system refused it." });
    expect(classifyThrow(secret, () => "in-doubt")).toEqual({ state: "in-doubt" });
    expect(classifyThrow(secret, () => undefined)).toEqual({ state: "in-doubt" });
  });

  test("nonsense is in doubt, and a promise of it ends no process", async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown): unknown => rejections.push(reason);
    process.on("unhandledRejection", note);
    const broken = [
      () => "completed",
      () => true,
      () => ({}),
      () => Promise.reject(secret),
      () => {
        throw secret;
      },
    ];
    for (const classify of broken)
      expect(classifyThrow(secret, classify as unknown as Classify)).toEqual({ state: "in-doubt" });
    // Unhandled rejections are reported after the microtasks of a turn.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(rejections).toEqual([]);
  });

  test("an error whose properties throw is in doubt", () => {
    const hostile = new Error("x");
    Object.defineProperty(hostile, "cause", {
      get: () => {
        throw secret;
      },
    });
    for (const classify of [undefined, oneRequest])
      expect(classifyThrow(hostile, classify)).toEqual({ state: "in-doubt" });
    const looped: Error = new Error("x");
    looped.cause = looped;
    expect(classifyThrow(looped, oneRequest)).toEqual({ state: "in-doubt" });
  });
});

describe("answers", () => {
  test.each<[Answer, unknown]>([
    [done({ id: 1 }), { answer: "done", result: { id: 1 } }],
    [done(), { answer: "done", result: undefined }],
    [doneWithoutResult(), { answer: "done-without-result" }],
    [notDone(), { answer: "not-done", authoritative: false }],
    [notDone({ authoritative: true }), { answer: "not-done", authoritative: true }],
    [unknown(), { answer: "unknown" }],
  ])("%o", (answer, shape) => {
    expect(answer).toEqual(shape);
    expect(Object.keys(answer)).toEqual(Object.keys(shape as object));
    expect(Object.isFrozen(answer)).toBe(true);
    expect(answerOf(answer)).toEqual(answer);
  });

  test("refused is one", () => {
    const no = refused("x");
    expect(answerOf(no)).toBe(no);
  });

  test.each([
    undefined,
    null,
    "done",
    { answer: "yes" },
    { answer: "done" },
    { answer: "done", result: 1, status: 200 },
    { answer: "not-done" },
    { answer: "not-done", authoritative: 1 },
    { answer: "unknown", result: 1 },
    { answer: "refused", why: "x" },
    new Error("done"),
    notExecuted("x"),
    [{ answer: "done", result: 1 }],
  ])("%o is none", (x) => {
    expect(answerOf(x)).toBeUndefined();
  });

  test("only true is authoritative", () => {
    expect(notDone({ authoritative: "yes" as unknown as boolean })).toEqual({
      answer: "not-done",
      authoritative: false,
    });
  });
});

describe("oneRequest, real errors: the connection was never made", () => {
  test("a closed port", async () => {
    const port = await closedPort();
    for (const request of [
      () => fetch(`http://127.0.0.1:${port}/`),
      () => fetch(`http://localhost:${port}/`),
      () => post({ port }),
    ])
      expect(oneRequest(await thrownBy(request))).toBe("released");
  });

  test("several addresses, all closed", async () => {
    const port = await closedPort();
    const lookup = (_: string, __: unknown, answer: (error: null, addresses: object[]) => void): void =>
      answer(null, [
        { address: "127.0.0.1", family: 4 },
        { address: "127.0.0.2", family: 4 },
      ]);
    const error = await thrownBy(() => post({ host: "two.example", port, lookup: lookup as never }));
    expect(error).toBeInstanceOf(AggregateError);
    expect(oneRequest(error)).toBe("released");
    expect(oneRequest(new TypeError("fetch failed", { cause: error }))).toBe("released");
  });

  test("a host that cannot be found", { timeout: 60_000 }, async () => {
    for (const request of [() => fetch("http://nothing.invalid/"), () => post({ host: "nothing.invalid", port: 80 })])
      expect(oneRequest(await thrownBy(request))).toBe("released");
  });

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "%s: a certificate that is not trusted, and not a byte of the request",
    async (version) => {
      const own = certificate({ host: "localhost", days: 1 });
      const late = certificate({ host: "localhost", days: -1 });
      const cases = [
        { served: own, code: "DEPTH_ZERO_SELF_SIGNED_CERT" },
        { served: late, ca: late.cert, servername: "localhost", code: "CERT_HAS_EXPIRED" },
        { served: own, ca: own.cert, servername: "other.example", code: "ERR_TLS_CERT_ALTNAME_INVALID" },
      ];
      for (const { served, code, ...options } of cases) {
        let received = 0;
        const server = tls.createServer({ ...served, minVersion: version, maxVersion: version }, (socket) => {
          socket
            .on("data", (bytes) => {
              received += bytes.length;
            })
            .on("error", () => {});
        });
        const port = await listen(server);
        const error = await thrownBy(() => post({ port, ...options }, https));
        expect(error).toMatchObject({ code });
        expect(oneRequest(error)).toBe("released");
        const fetched = await thrownBy(() => fetch(`https://127.0.0.1:${port}/`, { method: "POST", body: "{}" }));
        expect(oneRequest(fetched)).toBe("released");
        server.close();
        await once(server, "close");
        expect(received).toBe(0);
      }
    },
  );
});

describe("oneRequest, real errors: it may have happened", () => {
  async function serve(answer: http.RequestListener): Promise<number> {
    return listen(http.createServer(answer));
  }

  test("the connection is reset, or closed, after the request was read", async () => {
    let read = 0;
    const reset = await serve((request) =>
      request.resume().on("end", () => {
        read++;
        request.socket.resetAndDestroy();
      }),
    );
    const closed = await serve((request) =>
      request.resume().on("end", () => {
        read++;
        request.socket.destroy();
      }),
    );
    for (const port of [reset, closed]) {
      const requests = [() => post({ port }), () => fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" })];
      for (const request of requests) expect(oneRequest(await thrownBy(request))).toBe("in-doubt");
    }
    expect(read).toBe(4);
  });

  test("no answer comes", async () => {
    const port = await serve(() => {});
    const url = `http://127.0.0.1:${port}/`;
    const aborted = new AbortController();
    const hanging = thrownBy(() => fetch(url, { signal: aborted.signal }));
    aborted.abort();
    for (const error of [
      await thrownBy(() => fetch(url, { signal: AbortSignal.timeout(50) })),
      await hanging,
      await thrownBy(() => post({ port, signal: AbortSignal.timeout(50) })),
    ])
      expect(oneRequest(error)).toBe("in-doubt");
    (servers[0] as http.Server).closeAllConnections();
  });

  test("the answer breaks off, or is no JSON", async () => {
    const broken = await serve((request, response) => {
      response.writeHead(200, { "content-length": 100 }).write("{", () => request.socket.resetAndDestroy());
    });
    const html = await serve((_, response) => response.end("<html>"));
    for (const port of [broken, html])
      expect(oneRequest(await thrownBy(() => fetch(`http://127.0.0.1:${port}/`).then((r) => r.json())))).toBe(
        "in-doubt",
      );
  });

  // Why `oneRequest` asks for redirects to be off: nothing on the error tells which of the two requests it was.
  test("a redirect that is followed is a second request, and its error passes for the first one's", async () => {
    const location = `http://127.0.0.1:${await closedPort()}/`;
    const port = await serve((_, response) => response.writeHead(303, { location }).end());
    const url = `http://127.0.0.1:${port}/`;
    expect(oneRequest(await thrownBy(() => fetch(url, { method: "POST" })))).toBe("released");
    expect(oneRequest(await thrownBy(() => fetch(url, { method: "POST", redirect: "error" })))).toBe("in-doubt");
  });

  test("a child process that failed", async () => {
    const error = await thrownBy(async () =>
      execFileSync(process.execPath, ["-e", "process.exit(42)"], { stdio: "ignore" }),
    );
    expect(error).toMatchObject({ status: 42 });
    expect(oneRequest(error)).toBe("in-doubt");
  });

  test("statuses, as the usual clients tell them", async () => {
    const port = await serve((request, response) => response.writeHead(Number(request.url?.slice(1))).end());
    const final = [400, 401, 402, 403, 404, 410, 422, 451];
    const open = [301, 408, 409, 425, 429, 499, 500, 502, 503, 504];
    for (const status of [...final, ...open]) {
      const response = await fetch(`http://127.0.0.1:${port}/${status}`, { redirect: "manual" });
      expect(response.status).toBe(status);
      const told = [
        Object.assign(new Error("x"), { status: response.status }),
        Object.assign(new Error("x"), { statusCode: response.status, code: "resource_missing" }),
        Object.assign(new Error("x"), { code: "ERR_BAD_REQUEST", response: { status: response.status, data: {} } }),
        Object.assign(new Error("x"), { response }),
        new Error("wrapped", { cause: Object.assign(new Error("x"), { status: response.status }) }),
      ];
      for (const error of told) expect(oneRequest(error)).toBe(final.includes(status) ? "failed" : "in-doubt");
    }
  });
});

describe("oneRequest, shapes", () => {
  const error = (properties: object): Error => Object.assign(new Error("x"), properties);
  const down = error({ code: "ECONNREFUSED", syscall: "connect" });
  const reset = error({ code: "ECONNRESET", syscall: "read" });
  const looped = new AggregateError([down]);
  looped.errors.push(looped);

  test.each<[string, unknown, ReturnType<typeof oneRequest>]>([
    ["unreachable", error({ code: "EHOSTUNREACH", syscall: "connect" }), "released"],
    ["no network", error({ code: "ENETUNREACH", syscall: "connect" }), "released"],
    ["connect timed out", error({ code: "ETIMEDOUT", syscall: "connect" }), "released"],
    [
      "undici's connect timeout",
      new TypeError("fetch failed", { cause: error({ code: "UND_ERR_CONNECT_TIMEOUT" }) }),
      "released",
    ],
    ["refused, told without syscall", error({ code: "ECONNREFUSED" }), "released"],
    [
      "as axios wraps it",
      Object.assign(new Error("x", { cause: down }), { code: "ECONNREFUSED", response: undefined }),
      "released",
    ],
    ["read timed out", error({ code: "ETIMEDOUT", syscall: "read" }), "in-doubt"],
    ["axios' own timeout", error({ code: "ETIMEDOUT" }), "in-doubt"],
    ["unreachable, told without syscall", error({ code: "EHOSTUNREACH" }), "in-doubt"],
    ["a DNS server that refuses", error({ code: "ECONNREFUSED", syscall: "queryMx" }), "in-doubt"],
    ["a look-up by the body", error({ code: "ENOTFOUND", syscall: "queryMx" }), "in-doubt"],
    ["EPIPE", error({ code: "EPIPE", syscall: "write" }), "in-doubt"],
    ["socket hang up", error({ code: "ECONNRESET" }), "in-doubt"],
    ["undici's closed socket", new TypeError("fetch failed", { cause: error({ code: "UND_ERR_SOCKET" }) }), "in-doubt"],
    ["a server's TLS alert", error({ code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" }), "in-doubt"],
    ["AbortError", error({ name: "AbortError" }), "in-doubt"],
    ["TimeoutError", error({ name: "TimeoutError" }), "in-doubt"],
    ["an application's own code", error({ code: "INVALID_PURPOSE" }), "in-doubt"],
    ["a code from the answer's body", error({ status: 502, code: "ECONNREFUSED" }), "in-doubt"],
    ["a response without status", error({ code: "ECONNREFUSED", response: {} }), "in-doubt"],
    [
      "a wrapper's code over another cause",
      Object.assign(new Error("x", { cause: reset }), { code: "ECONNREFUSED" }),
      "in-doubt",
    ],
    [
      "a reset over a refused connection",
      Object.assign(new Error("x", { cause: down }), { code: "ECONNRESET", syscall: "read" }),
      "in-doubt",
    ],
    [
      "an abort over a refused connection",
      Object.assign(new Error("x", { cause: down }), { name: "AbortError" }),
      "in-doubt",
    ],
    ["several, all refused", new AggregateError([down, error({ code: "ETIMEDOUT", syscall: "connect" })]), "released"],
    ["several, one reset", new AggregateError([down, reset]), "in-doubt"],
    ["several, one answered", new AggregateError([down, error({ status: 400 })]), "in-doubt"],
    ["several, all answered", new AggregateError([error({ status: 400 }), error({ status: 400 })]), "in-doubt"],
    ["several, in one of several", new AggregateError([new AggregateError([down])]), "released"],
    ["several that hold themselves", looped, "in-doubt"],
    [
      "a wrapper's code over a cause without one",
      Object.assign(new Error("x", { cause: error({}) }), { code: "ECONNREFUSED" }),
      "in-doubt",
    ],
    [
      "a chain too long to follow",
      Array.from({ length: 12 }).reduce(
        (cause) => Object.assign(new Error("x", { cause }), { code: "ECONNREFUSED" }),
        reset,
      ),
      "in-doubt",
    ],
    ["several, none", new AggregateError([]), "in-doubt"],
    ["a list of retries over a refusal", error({ status: 400, errors: [reset] }), "in-doubt"],
    ["400 made up over a reset", Object.assign(new Error("x", { cause: reset }), { status: 400 }), "in-doubt"],
    ["400 over 500", Object.assign(new Error("x", { cause: error({ status: 500 }) }), { status: 400 }), "in-doubt"],
    ["a status in words", error({ status: "400" }), "in-doubt"],
    ["gRPC's status", error({ code: 5 }), "in-doubt"],
    ["no object", "ECONNREFUSED", "in-doubt"],
    ["nothing", undefined, "in-doubt"],
  ])("%s", (_, thrown, state) => {
    expect(oneRequest(thrown)).toBe(state);
  });
});
