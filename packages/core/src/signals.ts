/**
 * Like `AbortSignal.any`, but let go by hand: a process-long signal would otherwise collect one dependent per call.
 */
export function linkSignals(...sources: readonly (AbortSignal | undefined)[]): {
  readonly signal: AbortSignal;
  readonly unlink: () => void;
} {
  const { controller, unlink } = follow(sources);
  return { signal: controller.signal, unlink };
}

function follow(sources: readonly (AbortSignal | undefined)[]): {
  readonly controller: AbortController;
  readonly unlink: () => void;
} {
  const controller = new AbortController();
  const undo: (() => void)[] = [];
  for (const source of sources) {
    if (source === undefined) continue;
    const abort = (): void => controller.abort(source.reason);
    if (source.aborted) abort();
    source.addEventListener("abort", abort, { once: true });
    undo.push(() => source.removeEventListener("abort", abort));
  }
  return {
    controller,
    unlink() {
      for (const each of undo) each();
    },
  };
}

export interface Stage {
  readonly isOver: () => boolean;
  /** Aborts when the source does, and at the end. */
  readonly signal: () => AbortSignal;
  readonly end: () => void;
}

/** Its signal is made when it is first looked at: most runs never do, and an error to abort with takes a tenth of a run's time. */
export function stage(source: AbortSignal | undefined, reason: () => Error): Stage {
  let heard = source;
  let followed: ReturnType<typeof follow> | undefined;
  let over = false;

  function abort(): void {
    followed?.controller.abort(reason());
    followed?.unlink();
  }

  return {
    isOver: () => over,
    signal() {
      if (followed === undefined) {
        followed = follow([heard]);
        if (over) abort();
      }
      return followed.controller.signal;
    },
    end() {
      over = true;
      if (followed !== undefined) abort();
      // What aborts later is no reason, also for who looks later still.
      else if (!source?.aborted) heard = undefined;
    },
  };
}
