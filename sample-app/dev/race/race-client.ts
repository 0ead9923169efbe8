export interface Answer {
  readonly status: number;
  readonly ms: number;
}

/** Talks to the apps of a race, until it is told to stop. */
export class RaceClient {
  readonly #stop: AbortSignal;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
  }

  /** Creates an account and returns its path. */
  async openAccount(app: string, balance: number): Promise<string> {
    const response = await this.#ask(`${app}/accounts`, { owner: 'Race', balance });
    const { id } = (await answerOf(response)) as { id: number };
    return `/accounts/${id}`;
  }

  async balanceOf(app: string, account: string): Promise<number> {
    const { balance } = (await answerOf(await this.#ask(app + account))) as { balance: number };
    return balance;
  }

  /** Withdraws 1 and says what came of it, after how long. An app that can't be reached counts as status 0. */
  async withdraw(app: string, account: string, query: string): Promise<Answer> {
    const start = performance.now();
    const status = await this.#statusOf(`${app}${account}/withdraw${query}`);
    this.#stop.throwIfAborted();
    return { status, ms: performance.now() - start };
  }

  async #statusOf(url: string): Promise<number> {
    try {
      const response = await this.#ask(url, { amount: 1 });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  }

  #ask(url: string, body?: object): Promise<Response> {
    const signal = this.#stop;
    if (!body) return fetch(url, { signal });
    return fetch(url, {
      signal,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }
}

async function answerOf(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
