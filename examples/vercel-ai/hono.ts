import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { app } from "./lib/app.ts";
import { guarded } from "./lib/guarded.ts";
import { resumed } from "./lib/streams.ts";

const hono = new Hono()
  .post("/api/chat", ({ req }) => guarded(req.raw))
  .get("/api/chat/:id/stream", ({ req }) => resumed(req.param("id")));

const server = serve({ fetch: hono.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);
process.once("SIGTERM", async () => {
  server.close();
  await app().tp.close(); // waits for what runs, also when its page has left
  process.exit(0);
});
