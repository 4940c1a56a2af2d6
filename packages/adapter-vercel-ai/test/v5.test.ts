import * as ai from "ai-v5";
import * as kit from "ai-v5/test";
import * as mcp from "mcp-v5";
import { suite } from "./suite.ts";

suite("ai-v5", { ai, kit, mcp });
