import "./node-version.ts";

export { type CrashPoint, type TestTwiceproof, testTwiceproof } from "./kit.ts";
export { type StoreHarness, type StoreLaw, storeLaws } from "./laws.ts";
