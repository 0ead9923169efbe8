export interface Answer {
  readonly status: number;
  readonly ms: number;
}

/** Creates an account and returns the path of it. */
export async function openAccount(app: string, balance: number): Promise<string> {
  const { id } = await askJson<{ id: number }>(`${app}/accounts`, { owner: 'Race', balance });
  return `/accounts/${id}`;
}

export async function balanceOf(app: string, account: string): Promise<number> {
  const { balance } = await askJson<{ balance: number }>(app + account);
  return balance;
}

/** Withdraws 1 and returns what came of it, after how long. An app that can't be reached counts as status 0. */
export async function withdraw(app: string, account: string, query: string): Promise<Answer> {
  const start = performance.now();
  const status = await ask(`${app}${account}/withdraw${query}`, { amount: 1 }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status;
    },
    () => 0,
  );
  return { status, ms: performance.now() - start };
}

async function askJson<T>(url: string, body?: object): Promise<T> {
  const response = await ask(url, body);
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

function ask(url: string, body?: object): Promise<Response> {
  if (!body) return fetch(url);
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}
