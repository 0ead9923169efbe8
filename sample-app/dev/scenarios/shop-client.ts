import { setTimeout } from 'node:timers/promises';

/** What an app answered, and after how long. An app that can't be reached counts as status 0. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly ms: number;
  /** How often it was a 409 before, for a client that comes again. */
  readonly cameAgain: number;
}

interface ShopRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
}

/** Hears how far a crowd has come. `figure`: what the data said when it was read last. */
type OnProgress = (answered: number, of: number, figure: number | null) => void;

interface CrowdOptions {
  readonly figure?: () => Promise<number>;
  readonly comesAgain?: boolean;
}

/**
 * When a client comes again that found the shop too busy, in ms: sooner than its 409 says, so that nobody has to wait
 * for a demonstration. And how often it tries.
 */
const COMES_AGAIN_MS = 1_000;
const MOST_TRIES = 20;

interface ShopClientOptions {
  /** Ends all requests when it aborts. @default they end by themselves */
  readonly stop?: AbortSignal;
  readonly onProgress?: OnProgress;
  /** Whether to read the data while a crowd is on its way. @default false */
  readonly followsFigures?: boolean;
}

/** How many connections a process has to the database. */
const CONNECTIONS = 5;

/** How long to wait between two looks at the data, in ms. */
const LOOK_EVERY_MS = 100;

/** Talks to the processes of the shop. */
export class ShopClient {
  readonly #apps: readonly string[];
  readonly #stop: AbortSignal | undefined;
  readonly #onProgress: OnProgress | undefined;
  readonly #followsFigures: boolean;

  constructor(apps: readonly string[], { stop, onProgress, followsFigures = false }: ShopClientOptions = {}) {
    this.#apps = apps;
    this.#stop = stop;
    this.#onProgress = onProgress;
    this.#followsFigures = followsFigures;
  }

  /** How many there are. */
  get processes(): number {
    return this.#apps.length;
  }

  /** Lets each process open its connections to the database, so that a crowd finds all of them ready. */
  async warmUp(): Promise<void> {
    const looks = this.#apps.flatMap((app) => Array.from({ length: CONNECTIONS }, () => app));
    await Promise.all(looks.map((app) => this.#send(app, { path: '/stock/NOTHING' })));
  }

  /** @throws Error when the app does not do it */
  async ask<Body>(request: ShopRequest): Promise<Body> {
    const { status, body } = await this.#send(this.#apps[0]!, request);
    if (status < 200 || status > 299) {
      throw new Error(`${request.method ?? 'GET'} ${request.path} was answered ${status}: ${String(body['message'])}`);
    }
    return body as Body;
  }

  /**
   * Sends the same request many times at once, to all processes in turn.
   *
   * @param figure reads from the data what the crowd changes
   * @param comesAgain whether a client that finds the shop too busy comes again
   */
  async crowd(
    size: number,
    request: ShopRequest,
    { figure, comesAgain = false }: CrowdOptions = {},
  ): Promise<readonly Answer[]> {
    let answered = 0;
    let latest: number | null = null;
    const following = new AbortController();
    if (figure && this.#followsFigures) {
      void follow(figure, following.signal, (value) => {
        latest = value;
        this.#onProgress?.(answered, size, latest);
      });
    }
    const answers = await Promise.all(
      Array.from({ length: size }, async (_, turn) => {
        const app = this.#apps[turn % this.#apps.length]!;
        let answer = await this.#send(app, request);
        for (let tries = 1; comesAgain && answer.status === 409 && tries < MOST_TRIES; tries++) {
          await setTimeout(COMES_AGAIN_MS);
          answer = { ...(await this.#send(app, request)), cameAgain: tries };
        }
        this.#onProgress?.(++answered, size, latest);
        return answer;
      }),
    ).finally(() => following.abort());
    if (figure && this.#followsFigures) this.#onProgress?.(size, size, await figure());
    return answers;
  }

  async #send(app: string, { method = 'GET', path, body }: ShopRequest): Promise<Answer> {
    const start = performance.now();
    const answer = await fetch(app + path, {
      ...(this.#stop && { signal: this.#stop }),
      method,
      // Each is a client of its own. And a connection that is kept may be closed by the app just when it is used again.
      headers: { connection: 'close', 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    }).then(
      async (response) => ({ status: response.status, body: parsed(await response.text()) }),
      () => ({ status: 0, body: {} }),
    );
    this.#stop?.throwIfAborted();
    return { ...answer, ms: performance.now() - start, cameAgain: 0 };
  }
}

/** Reads a figure now and then, until the signal aborts. */
async function follow(
  figure: () => Promise<number>,
  signal: AbortSignal,
  onFigure: (value: number) => void,
): Promise<void> {
  while (!signal.aborted) {
    const value = await figure().catch(() => null);
    if (value !== null && !signal.aborted) onFigure(value);
    await setTimeout(LOOK_EVERY_MS);
  }
}

function parsed(text: string): Record<string, unknown> {
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
