import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Place, Program } from "./program.ts";
import { run, serverAccount } from "./run.ts";

const durable = {
  "innodb-flush-log-at-trx-commit": "1",
  "sync-binlog": "1",
  "log-bin": "binlog",
  "server-id": "1",
};
const small = { "innodb-buffer-pool-size": "64M", "max-connections": "200", "performance-schema": "OFF" };

function options(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).map(([key, value]) => `--${key}=${value}`);
}

function program(
  serverCommand: Command,
  own: Readonly<Record<string, string>>,
  initialise: Program["initialise"],
): Program {
  return {
    endSignal: "SIGTERM",
    // An orderly end takes MySQL 1.6 s.
    stopSignal: "SIGKILL",
    initialise: async (place) => {
      await initialise(place);
      // Run by the server at each start, before it listens.
      writeFileSync(
        join(place.directory, "init.sql"),
        `drop user if exists root@'127.0.0.1';
create user root@'127.0.0.1' identified by '${place.password}';
grant all privileges on *.* to root@'127.0.0.1' with grant option;
`,
      );
    },
    serve: ({ directory, data }, port, settings) => ({
      ...serverCommand,
      args: [
        ...serverCommand.args,
        ...[`--datadir=${data}`, `--socket=${join(directory, "socket")}`, `--pid-file=${join(directory, "pid")}`],
        ...[`--init-file=${join(directory, "init.sql")}`, "--bind-address=127.0.0.1", `--port=${port}`],
        // The login without a password is for root@localhost, through the socket in a folder that is ours alone.
        "--skip-name-resolve",
        ...options({ ...durable, ...small, ...own, ...settings }),
      ],
    }),
    url: ({ password }, port) => `mysql://root:${password}@127.0.0.1:${port}/mysql`,
  };
}

/** MySQL; `command` begins with whatever it takes to run `mysqld`, and `--no-defaults`. */
export function mysqlProgram(command: Command): Program {
  const own = { mysqlx: "OFF", "secure-file-priv": "NULL" };
  return program(command, own, async ({ directory, data }: Place) => {
    const args = [...command.args, "--initialize-insecure", `--datadir=${data}`, ...options(own)];
    await run({ ...command, args, env: { TMPDIR: directory } }, "mysqld --initialize-insecure", serverAccount());
  });
}

export function mariadbProgram(mariadbd: string, installDb: string): Program {
  return program({ command: mariadbd, args: ["--no-defaults"] }, {}, async ({ directory, data }: Place) => {
    const args = ["--no-defaults", `--datadir=${data}`, "--auth-root-authentication-method=normal", "--skip-test-db"];
    await run({ command: installDb, args, env: { TMPDIR: directory } }, "mariadb-install-db", serverAccount());
  });
}
