/** For those who write an adapter: the checks, texts and names that all adapters share. */

import "./node-version.ts";

export { canonical } from "./canonical.ts";
export { isInsideEffect } from "./chain.ts";
export { checkRules, ruleNames } from "./effect.ts";
export { digest, shortRef } from "./id.ts";
export { threadHeld } from "./problems-lock.ts";
export { checkName, checkOptions, checkScope } from "./validate.ts";
