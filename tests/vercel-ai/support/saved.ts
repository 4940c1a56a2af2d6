import Database from "better-sqlite3";
import type { Message } from "./protocol.ts";

/** A chat as a server saved it. */
export function savedChat(file: string, chat: string): readonly Message[] {
  const database = new Database(file, { readonly: true });
  try {
    const text = database.prepare<[string], string>("select messages from chats where id = ?").pluck().get(chat);
    return text === undefined ? [] : (JSON.parse(text) as Message[]);
  } finally {
    database.close();
  }
}
