/** The AI SDK as far as it is needed here: the shapes that versions 5, 6 and 7 have in common. Nothing is imported from it. */

export interface ToolCallOptions {
  readonly toolCallId?: string | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

export type Execute = (input: unknown, options: ToolCallOptions) => unknown;

/** The function that a tool runs. A type that allows for a tool without one says `never` there, which is left out. */
type ExecuteOf<Tool> = Tool extends { readonly execute?: infer E } ? NonNullable<E> : never;

/** What the tool takes, as its schema gives it out. */
export type InputOf<Tool> = [ExecuteOf<Tool>] extends [never]
  ? unknown
  : ExecuteOf<Tool> extends (input: infer Input, options: never) => unknown
    ? Input
    : unknown;

/** What the tool gives; of a generator, what it yields. */
export type OutputOf<Tool> = [ExecuteOf<Tool>] extends [never]
  ? unknown
  : ExecuteOf<Tool> extends (input: never, options: never) => infer Output
    ? Output extends AsyncIterable<infer Yielded>
      ? Yielded
      : Awaited<Output>
    : unknown;

/** A `UIMessage` of any version. */
export interface ChatMessage {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly unknown[];
}

/** A tool's part of a message. */
export interface ToolPart {
  readonly type: string;
  readonly toolName?: string;
  readonly toolCallId: string;
  readonly state: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string | undefined;
  readonly providerExecuted?: boolean;
  readonly approval?: { readonly approved?: boolean } | undefined;
}

/** Compared both ways, so that functions written for one set of tools fit as well as functions written for none. */
type Bivariant<Options, Result> = { compare(options: Options): Result }["compare"];

interface Step {
  readonly text: string;
  readonly finishReason: string;
  readonly content: readonly unknown[];
}

/** A `StopCondition` of any version. */
export type StopCondition = Bivariant<{ readonly steps: readonly Step[] }, boolean | PromiseLike<boolean>>;

/** A `PrepareStepFunction` of any version. */
export type PrepareStep<Result = unknown> = Bivariant<
  { readonly steps: readonly Step[]; readonly stepNumber: number; readonly messages: readonly unknown[] },
  Result
>;
