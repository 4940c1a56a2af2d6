import type { NextConfig } from "next";

export default {
  // A native module: it is loaded from node_modules, and never bundled.
  serverExternalPackages: ["better-sqlite3"],
} satisfies NextConfig;
