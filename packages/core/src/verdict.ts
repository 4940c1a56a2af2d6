import type { Answer } from "./classify.ts";
import type { Codec } from "./codec.ts";
import type { StoredVerdict } from "./store.ts";

/** What an answer, of a reconcile hook or of a person, writes on the record. */
export async function verdictOf(codec: Codec, answer: Exclude<Answer, { answer: "unknown" }>): Promise<StoredVerdict> {
  switch (answer.answer) {
    case "done": {
      const encoded = await codec.encode(answer.result);
      return { state: "completed", payload: encoded.kept ? encoded.payload : null };
    }
    case "done-without-result":
      return { state: "completed", payload: null };
    case "refused":
      return { state: "failed", payload: { format: "json", text: JSON.stringify({ why: answer.why }) } };
    case "not-done":
      return { state: "released", payload: null };
  }
}
