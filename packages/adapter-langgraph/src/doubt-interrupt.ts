/** What an interrupt carries that stands for a doubt: for people and their tools, and safe to show. */
export interface DoubtInterrupt {
  readonly type: "twiceproof/in-doubt";
  /** The claim's id, as in `tp.doubts.get`. */
  readonly id: string;
  /** What messages call it: eight hex digits. */
  readonly ref: string;
  readonly tool: string;
  readonly message: string;
}

/** Whether this is the `value` of an interrupt by which a doubt left its tool. */
export function isDoubtInterrupt(value: unknown): value is DoubtInterrupt {
  return typeof value === "object" && value !== null && (value as DoubtInterrupt).type === "twiceproof/in-doubt";
}
