import { agentWays } from "../support/agents.ts";
import { openCallsSuite } from "../support/open-calls.ts";

openCallsSuite(agentWays);
