import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockKeyError, lockKey, LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

@Injectable()
class PayOuts {
  constructor(private readonly locks: LockService) {}

  @WithLock('pay-out:<id>')
  async pay(id: string): Promise<string> {
    const { key } = this.locks.current()!;
    return (await this.locks.inspect(lockKey('pay-out:<id>', { id }))) ? key : 'looked at another key';
  }
}

const anyKey = lockKey as (...args: unknown[]) => string;

describe('lockKey()', () => {
  it.each(['3a10c52d-d2b1-4b6e-9d3b-0a9f6c1f7e21', 'a@b.example', '1:x', '{7}', 'a b\n'])(
    'lockKey() makes the same key of %j as @WithLock does',
    async (id) => {
      const module = await Test.createTestingModule({
        imports: [LockTestingModule.forRoot()],
        providers: [PayOuts],
      }).compile();
      await expect(module.get(PayOuts).pay(id)).resolves.toBe(lockKey('pay-out:<id>', { id }));
      await module.close();
    },
  );

  it.each<[string, string, string]>([
    ['a value', lockKey('order:<id>', { id: 42n }), 'order:42'],
    ['a path', lockKey('order:<dto.items.0.sku>', { dto: { items: [{ sku: 'A1' }] } }), 'order:A1'],
    ['a position', lockKey('order:<0>:<1>', ['a', false]), 'order:a:false'],
    [
      'a part of a request',
      lockKey('report:<params.id>:<headers.x-tenant>', { params: { id: 7 }, headers: { 'x-tenant': 't' } }),
      'report:7:t',
    ],
    ['nothing', lockKey('nightly'), 'nightly'],
  ])('lockKey() makes a key of %s', (_of, key, expected) => expect(key).toBe(expected));

  it.each<[string, unknown[], RegExp]>([
    [
      'a value that is missing',
      ['a:<id>', {}],
      /^<id> in the lock key "a:<id>" of lockKey\(\) is undefined, but must be/,
    ],
    ['an empty value', ['a:<id>', { id: '' }], /is ""/],
    ['an object', ['a:<id>', { id: {} }], /is an object/],
    ['a Date', ['a:<id>', { id: new Date() }], /is an object \(Date\)/],
    ['what every object has', ['a:<toString>', {}], /is a function/],
    ['a key that is too long', ['a:<id>', { id: 'x'.repeat(1023) }], /comes to 1025 characters/],
  ])('lockKey() throws LockKeyError for %s', (_what, args, detail) => {
    expect(() => anyKey(...args)).toThrow(LockKeyError);
    expect(() => anyKey(...args)).toThrow(expect.objectContaining({ detail: expect.stringMatching(detail) }));
  });

  it.each<[string, unknown[], RegExp]>([
    ['a template that is none', [42, {}], /must be a non-empty template, not 42/],
    ['values that are no object', ['a:<id>', '7'], /names <id>\. Their values must come in an object, not as "7"/],
    ['no values', ['a:<id>'], /not as undefined/],
    ['values that nothing keeps apart', ['a:<x><y>', { x: 1, y: 2 }], /nothing between them/],
    ['a "%", with which others are escaped', ['a:50%<x>', { x: 1 }], /has a "%"/],
    ['"${x}" in plain quotes', ['a:${x}', { x: 1 }], /has "\$\{x\}"[^]*Write <x>\./],
  ])('lockKey() throws LockOptionsError for %s', (_what, args, message) => {
    expect(() => anyKey(...args)).toThrow(LockOptionsError);
    expect(() => anyKey(...args)).toThrow(message);
  });
});
