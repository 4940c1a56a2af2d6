import { isLost, TwiceproofError } from "@twiceproof/core";
import { errorText } from "./errors.ts";

export interface Drained {
  readonly response: Response;
  /**
   * Resolves at the end of the handler's stream, and so after what the SDK does there, such as an asynchronous `onFinish`
   * that saves the chat; rejects when the stream breaks off. Whoever reads `response` is not told before `end`.
   */
  readonly read: Promise<void>;
  /** With the error that the run ended with: a page is told its code, when it is ours; who is `strict` gets the error itself. */
  end(error?: unknown): void;
}

/**
 * Reads the response to its end, whether or not its caller does, so that it streams on when the page is closed or when
 * nobody ever reads it. (Not `tee`: there, who cancels waits for the other branch.)
 */
export function drained(response: Response, strict: boolean): Drained {
  if (typeof response?.status !== "number" || !("body" in response))
    throw new TwiceproofError("INVALID_ARGUMENT", "The handler of `withRun` must return a Response.");
  if (response.bodyUsed || response.body?.locked)
    throw new TwiceproofError(
      "INVALID_ARGUMENT",
      "The Response that the handler of `withRun` returned was read already: return a new one for each request.",
    );
  const { body } = response;
  if (body === null) return { response, read: Promise.resolve(), end: () => undefined };
  const forChat = !strict && response.headers.has("x-vercel-ai-ui-message-stream");
  let to: ReadableStreamDefaultController<Uint8Array> | undefined;
  let closing: Uint8Array | undefined;
  let broken = false;
  const passed = new ReadableStream<Uint8Array>({
    start(controller) {
      to = controller;
    },
    cancel() {
      to = undefined;
    },
  });

  async function pump(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read())
        if (forChat && isClosing(next.value)) closing = next.value;
        else to?.enqueue(next.value);
    } catch (error) {
      broken = true;
      throw error;
    }
  }

  return {
    response: new Response(passed, response),
    read: pump(body.getReader()),
    end(error) {
      const text = forChat ? errorText(error) : undefined;
      if (text === undefined && (broken || isLost(error) || (strict && error !== undefined))) return to?.error(error);
      if (text !== undefined) to?.enqueue(event({ type: "error", errorText: text }));
      if (closing !== undefined) to?.enqueue(closing);
      to?.close();
    },
  };
}

const closingText = "data: [DONE]\n\n";

/** The SDK's last word to a page: some pages read no further. */
function isClosing(chunk: Uint8Array): boolean {
  return chunk.length === closingText.length && new TextDecoder().decode(chunk) === closingText;
}

function event(chunk: object): Uint8Array {
  return new TextEncoder().encode(`data: ${JSON.stringify(chunk)}\n\n`);
}
