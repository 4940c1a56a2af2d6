/** The aliases of the SDK's majors in package.json. */
export type AiVersion = "ai-v5" | "ai-v6" | "ai-v7";

/** One answer of the model. */
export type Said =
  | { readonly text: string }
  | { readonly call: string; readonly tool: "charge" | "balance"; readonly input: object };

export interface ServerSetup {
  readonly version: AiVersion;
  readonly file: string;
  readonly payments: string;
  /** Of its runs and charges. */
  readonly leaseMs: number;
}

export interface Message {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly parts: readonly object[];
}

/** What is posted to a server. */
export interface Post {
  readonly id: string;
  readonly messages: readonly Message[];
  /** What the model says this time. */
  readonly script: readonly Said[];
  /** Whether a charge needs approval. */
  readonly approval?: boolean;
  readonly lock?: false;
  readonly onBusy?: "wait" | "interrupt";
  /** True: the messages come after those that are saved. */
  readonly load?: true;
  /** False: an application that forgot `run.loop`. */
  readonly loop?: false;
}
