/** `fetch` for a chat: while another run has the chat, the server answers 409, and the same request is sent again. */
export async function whenFree(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    const response = await fetch(input, init);
    if (response.status !== 409) return response;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
