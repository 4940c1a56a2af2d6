import * as ai from "ai-v6";
import * as kit from "ai-v6/test";
import * as mcp from "mcp-v6";
import { suite } from "./suite.ts";

suite("ai-v6", { ai, kit, mcp });
