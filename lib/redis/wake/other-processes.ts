import type { Listeners } from '../../store/listeners.js';
import {
  isKept,
  type FoundProcesses,
  type LockDetails,
  type ProcessQuestion,
  type ProcessReply,
} from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import type { KeyNames } from '../wire/key-names.js';
import { findProcesses, unsubscribedFrom } from './find-processes.js';
import { HolderQueries } from './holder-queries.js';
import { ProcessQueries } from './process-queries.js';
import { Questions } from './questions.js';
import type { WakeChannel } from './wake-channel.js';

interface OtherProcessesParts {
  readonly redis: Connection;
  readonly names: KeyNames;
  readonly listeners: Listeners;
  /** The subscription of this process, on which replies arrive. */
  readonly channel: () => WakeChannel;
}

/** The processes that share the locks on one Redis: finds them by their wake channels, and asks them. */
export class OtherProcesses {
  readonly questions: Questions;
  readonly holderQueries: HolderQueries;
  readonly processQueries: ProcessQueries;
  readonly #parts: OtherProcessesParts;

  constructor(parts: OtherProcessesParts) {
    this.#parts = parts;
    this.questions = new Questions(
      (channel, message) => parts.redis.publish(channel, message),
      () => parts.channel().checkAlive(),
    );
    this.holderQueries = new HolderQueries(this.questions);
    this.processQueries = new ProcessQueries(this.questions);
  }

  /** What the wake channels of all processes begin with. */
  get channelPrefix(): string {
    return this.#parts.names.wakeChannel('');
  }

  /** The database of the locks. */
  get database(): number {
    return this.#parts.redis.database;
  }

  /** Asks the process of a token what it knows about its lock. */
  async describe(token: string): Promise<LockDetails | undefined> {
    const { listeners, names } = this.#parts;
    const source = token.slice(0, token.lastIndexOf('.'));
    const own = listeners.source;
    const known = listeners.describe(token);
    if (known || !source || !own || isKept(token)) return known;
    if (!(await this.#canHear())) return undefined;
    return this.holderQueries.ask(token, names.wakeChannel(source), names.wakeChannel(own));
  }

  /** Finds all live processes. Never rejects. */
  async find(): Promise<FoundProcesses> {
    const { redis, listeners } = this.#parts;
    const couldHear = await this.#canHear();
    const { sources, unreached, isDown } = await findProcesses(redis, this.channelPrefix);
    // The subscription may have come up meanwhile.
    if (couldHear || (await this.#canHear())) return { sources, unreached };
    // What is wrong with a server that is down says more than that nothing is heard over it.
    return {
      sources: listeners.sources,
      unreached: isDown ? unreached : [...unreached, unsubscribedFrom(redis.server)],
    };
  }

  /** Asks a process. Never rejects. */
  async ask(source: string, { kind, about }: ProcessQuestion): Promise<ProcessReply> {
    const { listeners, names } = this.#parts;
    const own = listeners.source;
    if (own === undefined || !(await this.#canHear())) return 'unavailable';
    const question = { kind, about, to: source, replyTo: names.wakeChannel(own), database: this.database };
    const reply = await this.processQueries.ask(names.wakeChannel(source), question);
    return reply === 'silent' && (await this.#hasEnded(source)) ? 'gone' : reply;
  }

  /** Whether no such process is found any more: it may have ended when it had taken the question. */
  async #hasEnded(source: string): Promise<boolean> {
    const { sources, unreached } = await findProcesses(this.#parts.redis, this.channelPrefix);
    return unreached.length === 0 && !sources.includes(source);
  }

  /** Whether replies can arrive. */
  async #canHear(): Promise<boolean> {
    const channel = this.#parts.channel();
    await channel.opened();
    return channel.state === 'up';
  }
}
