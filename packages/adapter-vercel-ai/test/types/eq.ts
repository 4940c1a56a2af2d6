/** The same type, and not only assignable both ways. */
export type Eq<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

/** Does not compile for `false`. */
export function is<_True extends true>(): void {}
