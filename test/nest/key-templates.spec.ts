import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Injectable, Param, Post, Query } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';

interface Item {
  sku: string;
}

@Injectable()
class Orders {
  static toString() {
    return 'the orders';
  }

  constructor(private readonly locks: LockService) {}

  @WithLock('order:<id>')
  async byName(id: string | number | bigint | boolean) {
    return this.keys(id);
  }

  @WithLock('order:<dto.items.0.sku>')
  async byPath(dto: { items: Item[] }) {
    return this.keys(dto);
  }

  @WithLock('order:<0>')
  async byPosition(id: string) {
    return this.keys(id);
  }

  @WithLock('order:<1.id>')
  async byPathFromPosition(_note: string, dto: { id: string }) {
    return this.keys(dto);
  }

  @WithLock('order:<id>')
  async afterDefaultValue(note = 'a, b) {', id: string) {
    return this.keys(note, id);
  }

  @WithLock('order:<id>')
  async withDefaultValue(id: string = 'none') {
    return this.keys(id);
  }

  @WithLock('order:<id>:<city>:<second>')
  async destructured(
    { id, address: { place: city } }: { id: string; address: { place: string } },
    [, second = '']: string[],
  ) {
    return this.keys(id, city, second);
  }

  @WithLock('order:<first>:<2>')
  async beforeRest(first: string, ...more: string[]) {
    return this.keys(first, more);
  }

  @WithLock(['order:<to>', 'order:<from>', 'order:<to>'])
  async severalKeys(from: string, to: string) {
    return this.keys(from, to);
  }

  @WithLock('nightly-interest')
  async withoutPlaceholder() {
    return this.keys();
  }

  @WithLock('all:<a>:of:<a>:<b>')
  async oneNameTwice(a: string, b: string) {
    return this.keys(a, b);
  }

  @WithLock((from: string, to: string) => [`order:${to}`, `order:${from}`])
  async byFunction(from: string, to: string, _note?: string) {
    return this.keys(from, to);
  }

  @WithLock('größe:<größe>:<$of_1>')
  async unusualNames(größe: string, $of_1: string) {
    return this.keys(größe, $of_1);
  }

  private keys(..._used: unknown[]): readonly string[] {
    return this.locks.current()!.keys;
  }
}

@Controller('orders')
class OrdersController {
  constructor(private readonly locks: LockService) {}

  @Post(':userId')
  @WithLock('order:<userId>')
  async byParam(@Param('userId') uid: string) {
    return [uid, this.locks.current()!.key];
  }

  @WithLock('order:<userId>:<text>:<sku.id>')
  @Post(':userId/items')
  async byAll(@Query('text') t: string, @Body('sku') s: object, @Param('userId') uid: string) {
    return [t, s, uid, this.locks.current()!.key];
  }

  @Post(':id/:userId')
  @WithLock('order:<userId>')
  async byOwnName(@Param('userId') uid: string, @Param('id') userId: string) {
    return [uid, userId, this.locks.current()!.key];
  }
}

let app: INestApplication;
let orders: Orders;

beforeAll(async () => {
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Orders],
    controllers: [OrdersController],
  }).compile();
  app = module.createNestApplication();
  await app.init();
  orders = app.get(Orders);
});

afterAll(() => app.close());

describe('key templates', () => {
  it.each<[string, () => Promise<readonly string[]>, string[]]>([
    ['by the name of a parameter', () => orders.byName('7'), ['order:7']],
    ['by a path into a parameter', () => orders.byPath({ items: [{ sku: 'A1' }, { sku: 'B2' }] }), ['order:A1']],
    ['by position', () => orders.byPosition('7'), ['order:7']],
    ['by a path from a position', () => orders.byPathFromPosition('note', { id: '7' }), ['order:7']],
    ['from behind a parameter with a default value', () => orders.afterDefaultValue(undefined, '7'), ['order:7']],
    ['of a parameter that has a default value', () => orders.withDefaultValue('7'), ['order:7']],
    [
      'of a destructured parameter',
      () => orders.destructured({ id: '7', address: { place: 'Rome' } }, ['x', 'y']),
      ['order:7:Rome:y'],
    ],
    ['of a rest parameter, by position', () => orders.beforeRest('a', 'b', 'c'), ['order:a:c']],
    [
      'for several keys, without duplicates and in one order',
      () => orders.severalKeys('9', '10'),
      ['order:10', 'order:9'],
    ],
    ['or none, where it has no placeholder', () => orders.withoutPlaceholder(), ['nightly-interest']],
    ['in several places', () => orders.oneNameTwice('x', 'y'), ['all:x:of:x:y']],
    ['of a parameter with an unusual name', () => orders.unusualNames('XL', '1'), ['größe:XL:1']],
  ])('a key template takes a value %s', async (_how, call, keys) => {
    expect(await call()).toEqual(keys);
  });

  it.each([
    ['a number', 42, '42'],
    ['zero', 0, '0'],
    ['a bigint', 2n ** 64n, '18446744073709551616'],
    ['a boolean', false, 'false'],
  ])('a key template takes a value that is %s', async (_what, value, text) => {
    expect(await orders.byName(value)).toEqual([`order:${text}`]);
  });

  it('a function of the arguments makes a key, or several', async () => {
    expect(await orders.byFunction('9', '10')).toEqual(['order:10', 'order:9']);
  });
});

describe('key templates of route handlers', () => {
  it('a key template of a route handler knows the names that @Param gives to parameters', async () => {
    await request(app.getHttpServer()).post('/orders/7').expect(201, ['7', 'order:7']);
  });

  it('a key template of a route handler knows the names that @Query and @Body give, above @Post too', async () => {
    const answer = ['a b', { id: 'X' }, '7', 'order:7:a b:X'];
    await request(app.getHttpServer())
      .post('/orders/7/items?text=a%20b')
      .send({ sku: { id: 'X' } })
      .expect(201, answer);
  });

  it('a key template of a route handler prefers the name of a parameter to the name of a route argument', async () => {
    await request(app.getHttpServer()).post('/orders/1/2').expect(201, ['2', '1', 'order:1']);
  });
});
