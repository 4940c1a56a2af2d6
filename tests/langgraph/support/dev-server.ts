import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";

/** The server that `langgraphjs dev` starts, in this process: `node dev-server.ts`. It keeps its state in its folder. */
const folder = process.env.TWICEPROOF_TEST_FOLDER ?? "";
const file = fileURLToPath(new URL("served-graphs.ts", import.meta.url));
const { host } = await startServer({
  port: 0,
  host: "127.0.0.1",
  nWorkers: 10,
  cwd: folder,
  graphs: { plain: `${file}:plain`, guarded: `${file}:guarded`, keyed: `${file}:keyed` },
});
process.send?.({ url: `http://${host}` });
process.on("disconnect", () => process.exit());
