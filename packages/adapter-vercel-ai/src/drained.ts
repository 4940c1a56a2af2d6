import { TwiceproofError } from "@twiceproof/core";

/**
 * Reads the response to its end, whether or not its caller does. So it streams on when the page is closed or when nobody
 * ever reads it, and `end` comes after what the SDK does at the end of its stream, such as an asynchronous `onFinish` that
 * saves the chat. (Not `tee`: there, who cancels waits for the other branch.)
 */
export function drained(response: Response): { readonly response: Response; readonly end: Promise<void> } {
  if (typeof response?.status !== "number" || !("body" in response))
    throw new TwiceproofError("INVALID_ARGUMENT", "The handler of `withRun` must return a Response.");
  const { body } = response;
  if (body === null) return { response, end: Promise.resolve() };
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let left = false;
  const passed = new ReadableStream<Uint8Array>({
    // Not awaited: a stream does not call `cancel` before its `start` is through.
    start(controller) {
      void pump(body, controller, () => left).then(resolve);
    },
    cancel() {
      left = true;
    },
  });
  return { response: new Response(passed, response), end };
}

async function pump(
  body: ReadableStream<Uint8Array>,
  to: ReadableStreamDefaultController<Uint8Array>,
  left: () => boolean,
): Promise<void> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) if (!left()) to.enqueue(next.value);
    if (!left()) to.close();
  } catch (error) {
    // It broke off: an end as well, which whoever reads is told.
    to.error(error);
  }
}
