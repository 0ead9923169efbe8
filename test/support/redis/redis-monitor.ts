import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

interface Seen {
  /** Whether a script ran it, not a client. */
  readonly inScript: boolean;
  readonly args: readonly string[];
}

/** What clients say when they connect or are idle, and what the monitor itself says. */
const NOT_WORK = new Set(['HELLO', 'AUTH', 'SELECT', 'INFO', 'CLIENT', 'SUBSCRIBE', 'MONITOR', 'ECHO', 'PING']);

const LINE = /^\+[\d.]+ \[\d+ (\S+)\] (.*)$/;

/**
 * Sees every command that a Redis runs, as `MONITOR` shows it. On a socket of its own: ioredis trips over a command
 * that is seen in the moment when its monitor begins.
 */
export class RedisMonitor {
  readonly #socket: Socket;
  readonly #port: number;
  readonly #seen: Seen[] = [];
  readonly #marks = new Map<string, () => void>();

  private constructor(port: number, socket: Socket) {
    this.#port = port;
    this.#socket = socket;
  }

  static async start(port: number): Promise<RedisMonitor> {
    const socket = connect(port, '127.0.0.1');
    const monitor = new RedisMonitor(port, socket);
    const lines = createInterface(socket);
    socket.write('MONITOR\r\n');
    await once(lines, 'line');
    lines.on('line', (line) => monitor.#see(line));
    return monitor;
  }

  /** What was seen since it was started or last asked. */
  async commands(): Promise<Seen[]> {
    const mark = `mark ${Math.random()}`;
    const marked = new Promise<void>((resolve) => this.#marks.set(mark, resolve));
    connect(this.#port, '127.0.0.1').end(`ECHO "${mark}"\r\n`).resume();
    await marked;
    return this.#seen.splice(0);
  }

  stop(): void {
    this.#socket.destroy();
  }

  #see(line: string): void {
    const [, source, command] = LINE.exec(line) ?? [];
    if (command === undefined) return;
    const args = [...command.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, arg]) => arg!);
    this.#marks.get(args[1] ?? '')?.();
    this.#seen.push({ inScript: source === 'lua', args });
  }
}

/** The commands of clients, without those that make or keep a connection. */
export function ofClients(seen: readonly Seen[]): (readonly string[])[] {
  return seen
    .filter(({ inScript, args }) => !inScript && !NOT_WORK.has(args[0]!.toUpperCase()))
    .map(({ args }) => args);
}

/** The messages that were published. */
export function published(seen: readonly Seen[]): string[] {
  return seen.filter(({ args }) => args[0]!.toUpperCase() === 'PUBLISH').map(({ args }) => args[2]!);
}
