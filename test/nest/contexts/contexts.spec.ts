import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { LockService } from 'nest-redis-lock';
import { turn } from '../../support/deferred.js';
import { type Context, lockedIn, PLACES, type Running } from './context.js';
import { JOBS } from './jobs.js';
import { MESSAGES } from './messages.js';
import { PROVIDERS } from './providers.js';
import { REQUESTS } from './requests.js';
import { Room } from './room.js';
import { TIMERS } from './timers.js';

jest.setTimeout(30_000);

const CONTEXTS: Record<string, Context> = { ...PROVIDERS, ...REQUESTS, ...MESSAGES, ...TIMERS, ...JOBS };
const TABLE = Object.entries(CONTEXTS).flatMap(([context, start]) =>
  PLACES.map((place) => ({ context, place, start })),
);

let running: Running | undefined;

afterEach(async () => {
  await running?.app.close();
  await running?.close?.();
  running = undefined;
});

describe.each(TABLE)('$context, with @WithLock $place the other decorator', ({ start, place }) => {
  it('Nest calls the method, which waits for its lock and never runs twice at a time', async () => {
    const room = new Room();
    running = await start(room, lockedIn(room, place));
    const held = await running.app.get(LockService).lock('room');
    const answers = running.call();
    await room.hasBeenAskedFor(2);
    await turn();
    expect(room.entered).toBe(0);

    held.assertHeld();
    await held.unlock();
    await room.hasBeenLeftBy(2);
    expect(room.most).toBe(1);
    expect(await Promise.all(answers)).toEqual(answers.map(() => 'visited'));
  });
});
