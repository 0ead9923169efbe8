import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockOptionsError, LockService, LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

@Controller()
class Messages {
  constructor(private readonly locks: LockService) {}

  async plain(message?: unknown) {
    return { message };
  }

  @WithLock('message', { wait: 0 })
  async locked() {
    return this.locks.current()?.key;
  }

  @Get()
  @WithLock('message', { scope: 'request' })
  async ofRequest() {
    return 'it ran';
  }
}

/** What a library may give its handlers in the second place, where those of HTTP have the response. */
const SECOND_ARGUMENTS: [what: string, args: unknown[]][] = [
  ['nothing', ['hello']],
  ['null', ['hello', null]],
  ['a text', ['hello', 'there']],
  ['an object', ['hello', { channel: 'news', end: () => undefined }]],
  [
    'an object that throws when it is read',
    [
      'hello',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('do not touch');
          },
        },
      ),
    ],
  ],
];

// Nest calls the type of its context "http", where the library does not say what it is.
describe.each(SECOND_ARGUMENTS)(
  'a handler that a library calls by its ExternalContextCreator, with %s for the response,',
  (_what, args) => {
    let app: INestApplication;
    let call: (name: 'plain' | 'locked' | 'ofRequest') => Promise<unknown>;

    beforeAll(async () => {
      const module = await Test.createTestingModule({
        imports: [LockTestingModule.forRoot()],
        controllers: [Messages],
      }).compile();
      app = await module.createNestApplication({ logger: false }).init();
      const messages = app.get(Messages);
      // eslint-disable-next-line @typescript-eslint/unbound-method -- Nest calls it on the object
      call = (name) => app.get(ExternalContextCreator).create(messages, Messages.prototype[name], name)(...args);
    });

    afterAll(() => app.close());

    it('a handler that a library calls runs as before where it takes no lock', async () => {
      expect(await call('plain')).toEqual({ message: 'hello' });
    });

    it('a handler that a library calls runs in its lock', async () => {
      expect(await call('locked')).toBe('message');
    });

    it('a handler that a library calls fails with the lock error itself', async () => {
      const lock = await app.get(LockService).lock('message');
      await expect(call('locked')).rejects.toBeInstanceOf(LockTimeoutError);
      await lock.unlock();
    });

    it("a handler that a library calls is refused with scope: 'request', and does not run", async () => {
      await expect(call('ofRequest')).rejects.toBeInstanceOf(LockOptionsError);
    });
  },
);
