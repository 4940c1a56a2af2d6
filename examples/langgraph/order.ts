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

/** Begins a new bill, and answers with its number. Until `deliver`, the service works on what is ordered. */
export async function newBill(): Promise<number> {
  return Number(await (await fetch(serviceUrl("/bills"), { method: "POST" })).text());
}

/** The reports on the bill. */
export async function readBill(): Promise<readonly string[]> {
  return (await (await fetch(serviceUrl("/bill"))).json()) as string[];
}

export async function deliver(): Promise<void> {
  await fetch(serviceUrl("/deliveries"), { method: "POST" });
}

function serviceUrl(path: string): string {
  return `${process.env.RESEARCH_SERVICE}${path}`;
}
