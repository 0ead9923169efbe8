import type { StageProcess } from '../../src/demo-page/demo-messages.js';
import type { AppReport } from '../processes/app.process.js';
import type { ChildProcesses, StartedChild } from '../processes/child-processes.js';
import type { ActorCommand, ActorNews } from './stage-actor.js';

const APP = new URL('../processes/app.process.js', import.meta.url);

export type LateWrite = Extract<ActorNews, { lateWrite: unknown }>['lateWrite'];

/** What a process of the live stage does, so that it can be told. */
interface ActorListener {
  acquired(actor: Actor): void;
  stalls(actor: Actor, ms: number): void;
  wroteLate(actor: Actor, outcome: LateWrite): void;
}

/** A process of the live stage. */
export class Actor {
  readonly name: string;
  readonly url: string;
  done = 0;
  #holding = 0;
  #state: StageProcess['state'] = 'running';
  readonly #child: StartedChild<AppReport>;

  constructor(name: string, child: StartedChild<AppReport>, listener: ActorListener) {
    this.name = name;
    this.url = child.report.url;
    this.#child = child;
    child.onMessage((message) => {
      const news = message as ActorNews;
      if ('stalls' in news) {
        this.#state = 'stalled';
        listener.stalls(this, news.stalls);
      } else if ('lateWrite' in news) {
        this.#state = 'running';
        listener.wroteLate(this, news.lateWrite);
      } else if (news.lock === 'acquired') {
        this.#holding++;
        listener.acquired(this);
      } else this.#holding--;
    });
  }

  get isAlive(): boolean {
    return this.#state !== 'killed';
  }

  get view(): StageProcess {
    const { name, done } = this;
    return { name, pid: this.#child.pid, state: this.#state, holds: this.#holding > 0, done };
  }

  kill(): void {
    this.#state = 'killed';
    this.#child.kill();
  }

  /** Its lease has ended: another one has the lock. */
  leaseEnded(): void {
    this.#holding = 0;
  }

  stallBeforeTheNextWrite(stallMs: number): void {
    this.#child.send({ stallMs } satisfies ActorCommand);
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}

export async function startActor(
  name: string,
  children: ChildProcesses,
  env: NodeJS.ProcessEnv,
  listener: ActorListener,
): Promise<Actor> {
  const started = await children.start<AppReport>(APP, { env: { ...env, PORT: '0', ON_STAGE: '1' }, quiet: true });
  return new Actor(name, started, listener);
}
