/** What is streamed just now, by chat, for pages that are loaded meanwhile. Of this process; the package resumable-stream is for more. */
interface Live {
  readonly events: string[];
  over: boolean;
  more: PromiseWithResolvers<void>;
}

const key = Symbol.for("example-vercel-ai-streams");
const kept = globalThis as { [key]?: Map<string, Live> };

function streams(): Map<string, Live> {
  kept[key] ??= new Map();
  return kept[key];
}

export async function keepStream(id: string, stream: ReadableStream<string>): Promise<void> {
  const live: Live = { events: [], over: false, more: Promise.withResolvers() };
  streams().set(id, live);
  const tell = (): void => {
    live.more.resolve();
    live.more = Promise.withResolvers();
  };
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      live.events.push(next.value);
      tell();
    }
  } catch {
    // It broke off: the page that posted is told.
  } finally {
    live.over = true;
    tell();
    if (streams().get(id) === live) streams().delete(id);
  }
}

/** The whole stream from its beginning, or 204. It asks nobody: to watch a run takes no lock. */
export function resumed(id: string): Response {
  const live = streams().get(id);
  if (live === undefined) return new Response(null, { status: 204 });
  let sent = 0;
  const body = new ReadableStream<string>({
    async pull(controller) {
      while (sent === live.events.length && !live.over) await live.more.promise;
      const event = live.events[sent++];
      if (event === undefined) controller.close();
      else controller.enqueue(event);
    },
  }).pipeThrough(new TextEncoderStream());
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1" },
  });
}
