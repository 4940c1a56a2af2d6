import { resumed } from "../../../../../lib/streams.ts";

/** For a page that is loaded in the middle of an answer. */
export async function GET(_: Request, { params }: { readonly params: Promise<{ id: string }> }): Promise<Response> {
  return resumed((await params).id);
}
