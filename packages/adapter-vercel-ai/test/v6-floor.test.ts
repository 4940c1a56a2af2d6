import * as ai from "ai-v6-floor";
import * as kit from "ai-v6-floor/test";
import * as mcp from "mcp-v6";
import { suite } from "./suite.ts";

suite("ai-v6-floor", { ai, kit, mcp });
