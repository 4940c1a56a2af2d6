import type { Verdict } from "./classify.ts";
import type { Codec } from "./codec.ts";
import type { StoredVerdict } from "./store.ts";
import { encodeWhy } from "./why.ts";

/** What an answer, of a reconcile hook or of a person, writes on the record. */
export async function verdictOf(codec: Codec, answer: Verdict): Promise<StoredVerdict> {
  switch (answer.answer) {
    case "done": {
      const encoded = await codec.encode(answer.result);
      return { state: "completed", payload: encoded.kept ? encoded.payload : null };
    }
    case "done-without-result":
      return { state: "completed", payload: null };
    case "refused":
      return { state: "failed", payload: encodeWhy(answer.why) };
    case "not-done":
      return { state: "released", payload: null };
  }
}
