import type { TwiceproofError } from "@twiceproof/core";

/** Where graphs keep their checkpoints, and claims are kept. */
export type Where =
  | { readonly on: "sqlite"; readonly checkpoints: string; readonly claims: string }
  /** Checkpoints and claims by one handle. */
  | { readonly on: "one sqlite"; readonly file: string }
  | { readonly on: "postgres"; readonly url: string };

/** How a worker is started. */
export interface WorkerSetup {
  readonly where: Where;
  /** The witness: one line for each time that the tool did its work. The product knows nothing of it. */
  readonly counter: string;
  /** Without, the same agent on the same saver. */
  readonly guarded: boolean;
  readonly onBusy?: "reject" | "wait" | "interrupt";
  /** Of the thread's lock. Four seconds: tests wait for its end, and on a busy machine a living worker must not lose it. */
  readonly leaseMs?: number;
  /** After its work the tool waits to be let on. */
  readonly stops?: boolean;
  /** After its work the tool blocks the event loop until this file exists. */
  readonly blockUntil?: string;
}

/** What the platform sends: the message of the user, or nothing, to go on from the last checkpoint; or what else it does to a thread. */
export type Sent = "input" | "nothing" | "an edit" | "a deletion";

export interface Dispatch {
  readonly thread: string;
  readonly runId: string;
  readonly sent: Sent;
  /** What the message asks. The thread's name, unless it says otherwise. */
  readonly topic?: string;
}

export type Outcome =
  | {
      readonly answer: string;
      /** The types of the thread's messages. */
      readonly messages: readonly string[];
    }
  | { readonly code: TwiceproofError["code"] | "none"; readonly message: string };

export type ToWorker =
  | { readonly type: "dispatch"; readonly id: number; readonly dispatch: Dispatch }
  | { readonly type: "go on" };

/** `in the tool`: its work is done, and it stands there. `met a claim`: somebody else's stands in the way. */
export type Notice = "ready" | "in the tool" | "met a claim";

export type FromWorker =
  | { readonly type: "at"; readonly notice: Notice }
  | { readonly type: "outcome"; readonly id: number; readonly outcome: Outcome };
