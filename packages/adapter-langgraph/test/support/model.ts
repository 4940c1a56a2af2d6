import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

/** One tool call that the model asks for. Ids are drawn afresh each time, as providers do. */
export interface Wish {
  readonly name: string;
  readonly args: Record<string, unknown>;
}

/** What the model answers, from all it is given: a text, or tool calls. */
type Script = (messages: readonly BaseMessage[]) => string | readonly Wish[];

let drawn = 0;

/** A model that follows a script, and keeps what it was given. */
export class ScriptedModel extends BaseChatModel {
  readonly given: string[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    super({});
    this.#script = script;
  }

  _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    this.given.push(messages.map(({ type, content }) => `${type}: ${JSON.stringify(content)}`).join("\n"));
    const answer = this.#script(messages);
    const message =
      typeof answer === "string"
        ? new AIMessage(answer)
        : new AIMessage({
            content: "",
            tool_calls: answer.map((wish) => ({ ...wish, id: `call-${++drawn}`, type: "tool_call" as const })),
          });
    return { generations: [{ text: message.text, message }] };
  }
}

/** Asks for these calls once for each human message, and is content with whatever comes back. */
export function wishing(...wishes: readonly Wish[]): ScriptedModel {
  return new ScriptedModel((messages) => (messages.at(-1)?.type === "human" ? wishes : "done"));
}
