import { expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { Subject, take } from 'rxjs';
import { ClientMessages } from '../../lib/http/client-messages.js';
import { ClientStream } from '../../lib/http/client-stream.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { turn, until } from '../support/deferred.js';

/** The stream of a call that flows, and what Nest passes on of it. */
function started() {
  const received = Object.assign(new Subject<object>(), { drainBuffer: () => undefined });
  const call = Object.assign(new Readable({ objectMode: true, read: () => undefined }), { cancelled: false });
  return { received, stream: new ClientStream(new ClientMessages(received, call)) };
}

/** Sends messages until one of them is in memory no more. */
const untilForgotten = (received: Subject<object>): Promise<void> => {
  const sent: WeakRef<object>[] = [];
  return until(async () => {
    const message = { number: sent.length };
    sent.push(new WeakRef(message));
    received.next(message);
    await turn();
    collectGarbage();
    return sent.some((each) => each.deref() === undefined);
  });
};

it.each(['end', 'data', 'readable'] as const)(
  'what nobody reads is not kept for a handler that has returned and listens to its call: %s',
  async (event) => {
    const { received, stream } = started();
    stream.listen(event);
    stream.drainBuffer();
    await untilForgotten(received);
    expect(stream.wasRead).toBe(true);
  },
);

it('what comes after the part that a method reads is not kept for it', async () => {
  const { received, stream } = started();
  const ofMethod = stream.forCall();
  const numbers: unknown[] = [];
  ofMethod.pipe(take(1)).subscribe((message) => numbers.push(message));
  stream.listen('end');
  stream.drainBuffer();
  received.next({ number: 0 });
  await untilForgotten(received);
  expect([numbers, ofMethod.wasRead]).toEqual([[{ number: 0 }], true]);
});

it('a method that waits for its lock gets all, however long it takes', async () => {
  const { received, stream } = started();
  const other = started();
  for (const each of [stream, other.stream]) {
    each.listen('end');
    each.drainBuffer();
  }
  const ofMethod = stream.forCall();
  const endWait = ofMethod.wait();
  received.next({ number: 1 });
  // By then, another call keeps nothing any more.
  await untilForgotten(other.received);
  received.next({ number: 2 });
  endWait();
  const read: unknown[] = [];
  ofMethod.subscribe((message) => read.push(message));
  await turn();
  expect(read).toEqual([{ number: 1 }, { number: 2 }]);
});
