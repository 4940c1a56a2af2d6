import { hash, randomBytes, randomFillSync } from "node:crypto";
import { hostname } from "node:os";

/** Changing what goes in, or its order, makes every recorded effect a new one. */
const idVersion = "twiceproof/1";

/** What a key is the key of. `thread` and `lock` are of kind `lock`; `run`, the memory of a finished run, is an effect. None ever meet. */
export type ClaimSpace = "effect" | "thread" | "lock" | "run";

/** SHA-256 over the length-prefixed UTF-8 bytes, so that no two triples share an input and keys compare as bytes (promise 6). */
export function claimId(namespace: string, space: ClaimSpace, key: string): string {
  return digest(idVersion, namespace, space, key);
}

/** Hex. */
export function digest(...parts: readonly string[]): string {
  const lengths = parts.map((part) => Buffer.byteLength(part));
  const all = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, 0));
  let at = 0;
  for (const [index, part] of parts.entries()) {
    at = all.writeUInt32BE(lengths[index] ?? 0, at);
    at += all.write(part, at, "utf8");
  }
  return hash("sha256", all, "hex");
}

/** What an outside API gets: the same on every attempt of one effect, and 36 characters, which every known API accepts. RFC 9562, version 8. */
export function idempotencyKey(id: string): string {
  const bytes = Buffer.from(id.slice(0, 32), "hex");
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

const random = Buffer.alloc(4_096);
let spent = random.length;

/** For attempts and decisions: 128 random bits. Drawn many at once, which takes a twentieth of the time. */
export function randomId(): string {
  if (spent === random.length) {
    randomFillSync(random);
    spent = 0;
  }
  spent += 16;
  return random.toString("hex", spent - 16, spent);
}

/** Short enough to read aloud; a prefix of the id. */
export function shortRef(id: string): string {
  return id.slice(0, 8);
}

/** For people, never compared: two processes of one host differ, and so do two lives of one pid. */
export function holderName(): string {
  return `${hostname()}:${process.pid}:${randomBytes(3).toString("hex")}`;
}
