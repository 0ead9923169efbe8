/** What an app answered, and after how long. An app that can't be reached counts as status 0. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly ms: number;
}

interface ShopRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
}

/** Talks to the processes of the shop, until it is told to stop. */
export class ShopClient {
  readonly #apps: readonly string[];
  readonly #stop: AbortSignal;
  readonly #onAnswer: (answered: number, of: number) => void;

  /** @param onAnswer called for each answer to a crowd */
  constructor(
    apps: readonly string[],
    stop: AbortSignal,
    onAnswer: (answered: number, of: number) => void = () => undefined,
  ) {
    this.#apps = apps;
    this.#stop = stop;
    this.#onAnswer = onAnswer;
  }

  /** @throws Error when the app does not do it */
  async ask<Body>(request: ShopRequest): Promise<Body> {
    const { status, body } = await this.#send(this.#apps[0]!, request);
    if (status < 200 || status > 299) {
      throw new Error(`${request.method ?? 'GET'} ${request.path} was answered ${status}: ${JSON.stringify(body)}`);
    }
    return body as Body;
  }

  /** Sends the same request many times at once, to all processes in turn. */
  async crowd(size: number, request: ShopRequest): Promise<readonly Answer[]> {
    let answered = 0;
    return Promise.all(
      Array.from({ length: size }, async (_, turn) => {
        const answer = await this.#send(this.#apps[turn % this.#apps.length]!, request);
        this.#onAnswer(++answered, size);
        return answer;
      }),
    );
  }

  async #send(app: string, { method = 'GET', path, body }: ShopRequest): Promise<Answer> {
    const start = performance.now();
    const answer = await fetch(app + path, {
      signal: this.#stop,
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    }).then(
      async (response) => ({ status: response.status, body: parsed(await response.text()) }),
      () => ({ status: 0, body: {} }),
    );
    this.#stop.throwIfAborted();
    return { ...answer, ms: performance.now() - start };
  }
}

function parsed(text: string): Record<string, unknown> {
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
