import type { Classify } from "./classify.ts";

/**
 * For an effect whose body makes a single outside request, with nothing after it that can throw. Its own retries and
 * redirects are further requests: turn them off (`maxRetries: 0`, `redirect: "error"`), or a second request that found no
 * connection would pass for the first one, which did its work.
 *
 * Released: the connection was never made. Failed: an HTTP status of 400 to 499, save those that say "later", "conflict"
 * or "cancelled". Everything else, and all evidence that contradicts itself, is in doubt.
 */
export const oneRequest: Classify = (error) => {
  const links = chainOf(error);
  if (links === undefined) return "in-doubt";
  const statuses = links.flatMap(statusesOf);
  if (statuses.length === 0) return neverConnected(error, 0) ? "released" : "in-doubt";
  return statuses.every(isRefusal) && !links.some(isTransportError) ? "failed" : "in-doubt";
};

interface Link {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly response?: unknown;
}

/** Longer chains than this, and cycles, tell nothing. */
const maxLinks = 10;

/** The error, its cause, the cause of that; the last one is where it began. */
function chainOf(error: unknown): readonly Link[] | undefined {
  const links: Link[] = [];
  for (let next = error; typeof next === "object" && next !== null; next = (next as Link).cause) {
    if (links.length === maxLinks) return undefined;
    links.push(next);
  }
  return links.length === 0 ? undefined : links;
}

function statusesOf(link: Link): number[] {
  const response = link.response as Link | null | undefined;
  return [link.status, link.statusCode, response?.status, response?.statusCode].filter(
    (status) => typeof status === "number" && status >= 100 && status < 600,
  ) as number[];
}

/** 408, 425, 429: later; 409: conflict, often with the same request still running; 499: the caller or a proxy gave up. */
const notFinal: ReadonlySet<number> = new Set([408, 409, 425, 429, 499]);

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && !notFinal.has(status);
}

/** Beside a status: a library that made up the status, or an answer that broke off. Several errors are several requests. */
function isTransportError(link: Link): boolean {
  return typeof link.syscall === "string" || isAbort(link) || Array.isArray(link.errors) || neverSentCode(link);
}

function isAbort(link: Link): boolean {
  return link.name === "AbortError" || link.name === "TimeoutError";
}

/** Of several addresses that were tried (`AggregateError`, RFC 8305) every one must have failed before it was connected. */
function neverConnected(error: unknown, depth: number): boolean {
  const links = chainOf(error);
  if (links === undefined || depth > 2) return false;
  let proof = false;
  for (const link of links) {
    if (isAbort(link) || statusesOf(link).length > 0 || (typeof link.response === "object" && link.response !== null))
      return false;
    const members = Array.isArray(link.errors) ? link.errors : undefined;
    if (members && (members.length === 0 || !members.every((member) => neverConnected(member, depth + 1))))
      return false;
    if (typeof link.syscall === "string" && !neverSentCode(link)) return false;
    // Only where it began: a wrapper's code may be its own.
    proof = members !== undefined || neverSentCode(link);
  }
  return proof;
}

function neverSentCode({ code, syscall }: Link): boolean {
  if (typeof code !== "string") return false;
  if (code === "ECONNREFUSED") return syscall === undefined || syscall === "connect";
  if (connectCodes.has(code)) return syscall === "connect";
  if (lookupCodes.has(code)) return syscall === "getaddrinfo";
  return code === "UND_ERR_CONNECT_TIMEOUT" || certificateCodes.has(code);
}

/** ETIMEDOUT and the rest can also come from a read or a write of a connection that was made. */
const connectCodes: ReadonlySet<string> = new Set(["EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);
const lookupCodes: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN"]);

/**
 * The client refused the server's certificate, which it does before it sends a byte of the request. From the list in
 * Node's documentation, tls, "X509 certificate error codes", without those that could be an application's own word
 * (INVALID_CA, INVALID_PURPOSE, CERT_REJECTED, HOSTNAME_MISMATCH …); ERR_TLS_CERT_ALTNAME_INVALID is in errors, "Node.js
 * error codes". Alerts of the server's (ERR_SSL_TLSV13_ALERT_…) are absent: with TLS 1.3 they come after the request.
 */
const certificateCodes: ReadonlySet<string> = new Set([
  "CERT_CHAIN_TOO_LONG",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "CERT_REVOKED",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
