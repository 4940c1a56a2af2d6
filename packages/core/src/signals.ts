/**
 * Like `AbortSignal.any`, but let go by hand: a process-long signal would otherwise collect one dependent per call.
 */
export function linkSignals(...sources: readonly (AbortSignal | undefined)[]): {
  readonly signal: AbortSignal;
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
    signal: controller.signal,
    unlink() {
      for (const each of undo) each();
    },
  };
}
