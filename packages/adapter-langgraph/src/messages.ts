/** The messages in a state or an input: those under `messages`, also a single one, or a state that is a list. */
export function messagesIn(state: unknown): readonly unknown[] {
  const given: unknown = Array.isArray(state) ? state : (state as { messages?: unknown } | null | undefined)?.messages;
  if (Array.isArray(given)) return given;
  return given === undefined || given === null ? [] : [given];
}
