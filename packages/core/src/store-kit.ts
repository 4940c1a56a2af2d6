/** For those who write a store: the interface, the state machine that all stores share, ids and errors. */

import "./node-version.ts";

export {
  type ErrorCode,
  isTwiceproofError,
  type StoreSetupCode,
  TwiceproofError,
} from "./errors.ts";
export { type ClaimSpace, claimId, randomId, shortRef } from "./id.ts";
export * from "./machine.ts";
export { type Place, pageOf, placeOf } from "./page.ts";
export type * from "./store.ts";
export * from "./ticket.ts";
