import { after } from "next/server";
import { guarded } from "../../../lib/guarded.ts";
import { unguarded } from "../../../lib/unguarded.ts";

export function POST(request: Request): Promise<Response> {
  return process.env.GUARD === "off" ? unguarded(request) : guarded(request, after);
}
