import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startRedisIn, type RedisServer } from './redis-server.js';

const SOURCE = fileURLToPath(new URL('../../lab/stepped-clock.c', import.meta.url));

/** Whether there is what it takes: a C compiler, and a system that preloads libraries as Linux does. */
export const canStep = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;

/** A Redis whose clock can be set while it runs. */
export class SteppedRedis {
  readonly server: RedisServer;
  readonly #folder: string;
  readonly #offset: number;

  private constructor(folder: string, offset: number, server: RedisServer) {
    this.#folder = folder;
    this.#offset = offset;
    this.server = server;
  }

  static async start(): Promise<SteppedRedis> {
    const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-clock-'));
    const [library, file] = [join(folder, 'stepped-clock.so'), join(folder, 'offset')];
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl']);
    writeFileSync(file, Buffer.alloc(8));
    const server = await startRedisIn({ LD_PRELOAD: library, CLOCK_OFFSET_FILE: file });
    return new SteppedRedis(folder, openSync(file, 'r+'), server);
  }

  /** Sets its clock so far from the true time. */
  setOff(ms: number): void {
    const offset = Buffer.alloc(8);
    offset.writeBigInt64LE(BigInt(ms) * 1000n);
    // In place: the server has mapped it.
    writeSync(this.#offset, offset, 0, 8, 0);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    closeSync(this.#offset);
    rmSync(this.#folder, { recursive: true });
  }
}
