import { probe } from "./probe.ts";
import { type Server, type ServerName, ServerUnavailable } from "./server.ts";

const variables: Readonly<Partial<Record<ServerName, string>>> = {
  postgres: "POSTGRES_URL",
  mariadb: "MARIADB_URL",
  mysql: "MYSQL_URL",
};

/** The server whose address the environment has; undefined when it has none. */
export async function givenServer(name: ServerName): Promise<Server | undefined> {
  const variable = variables[name];
  const url = variable && process.env[variable];
  if (!url) return undefined;
  try {
    const { version } = await probe(url);
    return { name, version, url, stop: async () => undefined };
  } catch (error) {
    throw new ServerUnavailable(`${variable} names a server that does not answer: ${(error as Error).message}`);
  }
}
