import { agentWays } from "../support/agents.ts";
import { entrySuite } from "../support/entries.ts";

entrySuite("createAgent with guardMiddleware", agentWays["createAgent with guardMiddleware"]);
