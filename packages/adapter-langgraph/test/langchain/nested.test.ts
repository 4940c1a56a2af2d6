import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { wishing } from "../support/model.ts";
import { charging, type Here, here, losesAndGoesOn, saver, schema, whole } from "../support/nested.ts";

describe("2: a doubt within", () => {
  const agent = (at: Here) =>
    createAgent({ model: wishing({ name: "charge", args: { n: 1 } }), tools: [charging(at)] });

  it("a subgraph that is a node", async () => {
    const at = here();
    const build = () =>
      whole(
        at,
        new StateGraph(MessagesAnnotation)
          .addNode("sub", agent(at).graph as never)
          .addEdge(START, "sub" as never)
          .addEdge("sub" as never, END)
          .compile({ checkpointer: saver(at) }),
      );
    expect(await losesAndGoesOn(at, build)).toContain("by hand");
  });

  it("a guarded graph that is a node of another", async () => {
    const at = here();
    const inner = whole(at, createAgent({ ...agent(at).options, checkpointer: saver(at) }).graph);
    const build = () =>
      whole(
        at,
        new StateGraph(MessagesAnnotation)
          .addNode("sub", async (state, given) => await inner.invoke(state, given))
          .addEdge(START, "sub")
          .addEdge("sub", END)
          .compile({ checkpointer: saver(at) }),
      );
    expect(await losesAndGoesOn(at, build)).toContain("by hand");
  });

  it("a sub-agent that a tool calls", async () => {
    const at = here();
    const ask = tool(
      async (_, given) => {
        const { messages } = await agent(at).invoke({ messages: [{ role: "user", content: "sub" }] }, given as never);
        return messages.map(({ content }) => content).join();
      },
      { name: "ask", description: "asks", schema },
    );
    const build = () =>
      whole(
        at,
        createAgent({ model: wishing({ name: "ask", args: { n: 0 } }), tools: [ask], checkpointer: saver(at) }),
      );
    expect(await losesAndGoesOn(at, build)).toContain("by hand");
  });
});
