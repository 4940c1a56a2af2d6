interface OrderOptions {
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** Resolves to the report, in the end. The service takes an idempotency key and ignores it, as many do. */
export async function orderReport(topic: string, { idempotencyKey, signal }: OrderOptions = {}): Promise<string> {
  const response = await fetch(serviceUrl("/reports"), {
    method: "POST",
    headers: idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
    body: topic,
    signal: signal ?? null,
  });
  if (!response.ok) throw new Error(`The research service answered ${response.status}.`);
  return await response.text();
}

/** The lines of the service's bill for this topic. */
export async function bill(topic: string): Promise<readonly string[]> {
  const response = await fetch(serviceUrl(`/bill?topic=${encodeURIComponent(topic)}`));
  return (await response.json()) as string[];
}

/** Until told so, the service works on what was ordered, and answers nobody. */
export async function deliver(isDelivering: boolean): Promise<void> {
  await fetch(serviceUrl("/delivering"), { method: "PUT", body: String(isDelivering) });
}

function serviceUrl(path: string): string {
  return `${process.env.RESEARCH_SERVICE}${path}`;
}
