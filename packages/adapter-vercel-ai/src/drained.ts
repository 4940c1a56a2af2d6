import { TwiceproofError } from "@twiceproof/core";

/**
 * Reads a copy of the response to its end. So it streams on when the page is closed or when nobody ever reads it, and
 * `end` comes after what the SDK does at the end of its stream, such as an asynchronous `onFinish` that saves the chat.
 */
export function drained(response: Response): { readonly response: Response; readonly end: Promise<void> } {
  if (typeof response?.status !== "number" || !("body" in response))
    throw new TwiceproofError("INVALID_ARGUMENT", "The handler of `withRun` must return a Response.");
  if (response.body === null) return { response, end: Promise.resolve() };
  const [forCaller, ours] = response.body.tee();
  return { response: new Response(forCaller, response), end: read(ours) };
}

async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  try {
    while (!(await reader.read()).done);
  } catch {
    // It broke off: that is an end as well, and the caller's copy tells it.
  }
}
