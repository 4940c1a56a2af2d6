import { createTwiceproof, type Twiceproof } from "@twiceproof/core";
import { sqliteStore } from "@twiceproof/store-sqlite";
import Database from "better-sqlite3";
import type { ChatMessage } from "./tools.ts";

interface App {
  readonly tp: Twiceproof;
  readonly database: Database.Database;
}

// Next loads this file once for each route, and again at each hot reload; the process has one of it all.
const key = Symbol.for("example-vercel-ai");
const kept = globalThis as { [key]?: App };

/** Made by the first request: to import this file, as a build does, opens nothing. */
export function app(): App {
  kept[key] ??= open();
  return kept[key];
}

function open(): App {
  const file = process.env.DATABASE ?? "app.db";
  const database = new Database(file);
  database.pragma("journal_mode = wal");
  database.exec("create table if not exists chats (id text primary key, messages text not null)");
  return { database, tp: createTwiceproof({ store: sqliteStore(file) }) };
}

export function loadChat(id: string): ChatMessage[] {
  const row = app().database.prepare<[string], { messages: string }>("select messages from chats where id = ?").get(id);
  return row === undefined ? [] : (JSON.parse(row.messages) as ChatMessage[]);
}

export function saveChat(id: string, messages: readonly ChatMessage[]): void {
  app()
    .database.prepare("insert into chats values (?, ?) on conflict (id) do update set messages = excluded.messages")
    .run(id, JSON.stringify(messages));
}
