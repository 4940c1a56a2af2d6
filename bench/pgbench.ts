import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { result } from "./side.ts";

const run = promisify(execFile);

/** The two statements of `byHand`, each a transaction. */
const script = `
\\set key random(1, 9223372036854775806)
insert into plain (id, attempt_id, namespace, key, name, fingerprint, holder, state, lease_until, created_at)
values (sha256(int8send(:key::bigint)), '\\x00112233445566778899aabbccddeeff', 'bench', 'order:0123456789ab:' || :key::bigint,
  'charge', '1:${"0".repeat(64)}', 'bench-worker:12345:0f0f0f', 'claimed', now() + 30000 * interval '1 millisecond', now());
update plain set state = 'completed', settled_at = now(), result = '${result}' where id = sha256(int8send(:key::bigint));
`.replaceAll(/\n {2}/g, " ");

/** Pairs a second by PostgreSQL's own load program, prepared; undefined when the distribution's is not installed. */
export function findPgbench(url: string): ((connections: number) => Promise<number>) | undefined {
  const home = "/usr/lib/postgresql";
  const versions = existsSync(home) ? readdirSync(home).toSorted((a, b) => Number(b) - Number(a)) : [];
  const program = versions.map((version) => join(home, version, "bin/pgbench")).find(existsSync);
  if (program === undefined) return undefined;
  return async (connections) => {
    const directory = mkdtempSync(join(tmpdir(), "twiceproof-pgbench-"));
    try {
      const file = join(directory, "pairs.sql");
      writeFileSync(file, script);
      const load = ["-c", `${connections}`, "-j", `${Math.min(2, connections)}`, "-T", "1"];
      const { stdout } = await run(program, [...load, "-n", "-M", "prepared", "-f", file, url]);
      // It tells no rate when no transaction was done in its second.
      return Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1] ?? 0);
    } finally {
      rmSync(directory, { recursive: true });
    }
  };
}
