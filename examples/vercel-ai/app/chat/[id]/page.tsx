import { loadChat } from "../../../lib/app.ts";
import { Chat } from "./chat.tsx";

export default async function Page({ params }: { readonly params: Promise<{ id: string }> }) {
  const { id } = await params;
  return <Chat id={id} saved={loadChat(id)} />;
}
