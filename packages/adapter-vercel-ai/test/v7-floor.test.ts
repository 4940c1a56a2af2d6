import * as ai from "ai-v7-floor";
import * as kit from "ai-v7-floor/test";
import * as mcp from "mcp-v7";
import { suite } from "./suite.ts";

suite("ai-v7-floor", { ai, kit, mcp });
