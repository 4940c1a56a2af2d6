import { randomUUID } from "node:crypto";
import { redirect } from "next/navigation";
import { connection } from "next/server";

/** A new chat for each visit. */
export default async function Page() {
  await connection();
  redirect(`/chat/${randomUUID()}`);
}
