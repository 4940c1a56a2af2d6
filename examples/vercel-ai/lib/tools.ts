import { type InferUITools, tool, type UIDataTypes, type UIMessage } from "ai";
import { z } from "zod";

const order = z.object({ orderId: z.string(), cents: z.number().int().positive() });

export type Order = z.infer<typeof order>;

export interface Charge {
  readonly id: string;
}

/** The tools, as any application of the AI SDK has them. */
export const tools = {
  charge: tool({
    description: "Charges the customer's card for an order.",
    inputSchema: order,
    // Without the abortSignal: a charge that was sent cannot be taken back, and to break it off would leave a doubt.
    execute: async (input): Promise<Charge> => {
      const response = await fetch(`${process.env.PAYMENT_API}/charges`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(input),
      });
      if (!response.ok) throw new Error(`The payment API answered ${response.status}.`);
      return (await response.json()) as Charge;
    },
  }),
};

export type ChatMessage = UIMessage<unknown, UIDataTypes, InferUITools<typeof tools>>;
