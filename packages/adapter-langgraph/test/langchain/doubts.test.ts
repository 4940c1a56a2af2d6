import { expect, it } from "vitest";
import { agentWays } from "../support/agents.ts";
import { config, doubtSuite, human, scene } from "../support/doubts.ts";
import { wishing } from "../support/model.ts";
import { rejection } from "../support/waiting.ts";

doubtSuite(agentWays);

it("several doubts at once are told by one error", async () => {
  const here = scene(() => Promise.reject(new Error("lost")), {
    model: wishing(...[0, 1, 2].map((n) => ({ name: "charge", args: { n } }))),
  });
  const build = agentWays["createAgent with effectTool"] ?? expect.fail();
  const error = await rejection(build(here).invoke(human, config));
  expect(error).toMatchObject({ code: "EFFECT_IN_DOUBT", cause: { errors: [{}, {}, {}] } });
});
