import { type RunOptions, type Twiceproof, TwiceproofError } from "@twiceproof/core";
import { type Chat, newChat, quiet, throwIfInDoubt } from "./chat.ts";
import { type ChatRun, createChatRun } from "./chat-run.ts";

/**
 * One run per chat at a time, round whatever gives a value: the job of a queue, an agent inside of a tool. Everything that
 * goes wrong rejects, with the chat free again: a chat that is busy, what the body throws, and a call of its tools whose
 * outcome is not known, also when the body returned.
 */
export async function withChat<Value>(
  tp: Twiceproof,
  options: RunOptions,
  body: (run: ChatRun) => Value | Promise<Value>,
): Promise<Value> {
  checkHandler("withChat(tp, options, body)", body);
  return await inChat(tp, options, true, async (run) => await body(run));
}

/**
 * The run is held until no call is under way, whether or not somebody waits for it. `strict`: it fails with its first doubt,
 * and so is not remembered.
 */
export async function inChat<Value>(
  tp: Twiceproof,
  options: RunOptions,
  strict: boolean,
  body: (run: ChatRun, chat: Chat) => Promise<Value>,
): Promise<Value> {
  return await tp.withRun(options, async (coreRun) => {
    const chat = newChat(options.turn, coreRun.signal);
    let value: Value;
    try {
      value = await body(createChatRun(coreRun, chat), chat);
    } finally {
      chat.over = true;
      await quiet(chat);
    }
    if (strict) throwIfInDoubt(chat);
    return value;
  });
}

export function checkHandler(what: string, handler: unknown): void {
  if (typeof handler !== "function")
    throw new TwiceproofError("INVALID_ARGUMENT", `\`${what}\` needs a function as its third argument.`);
}
