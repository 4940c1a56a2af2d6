import * as ai from "ai-v7";
import * as kit from "ai-v7/test";
import * as mcp from "mcp-v7";
import { suite } from "./suite.ts";

suite("ai-v7", { ai, kit, mcp });
