import { childrenOf } from "@twiceproof/test-servers/child";

export const child: ReturnType<typeof childrenOf> = childrenOf(new URL("./worker.ts", import.meta.url));
