import * as ai from "ai-v5-floor";
import * as kit from "ai-v5-floor/test";
import * as mcp from "mcp-v5";
import { suite } from "./suite.ts";

suite("ai-v5-floor", { ai, kit, mcp });
