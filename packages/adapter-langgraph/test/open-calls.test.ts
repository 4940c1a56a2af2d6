import { ways } from "./support/graphs.ts";
import { openCallsSuite } from "./support/open-calls.ts";

openCallsSuite(ways);
