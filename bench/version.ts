import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Of an installed package. */
export function versionOf(name: string): string {
  return (require(`${name}/package.json`) as { readonly version: string }).version;
}
