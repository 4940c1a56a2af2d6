import { suite } from "./suite.ts";

await suite("ai-v5");
