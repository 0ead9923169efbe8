import { EventEmitter } from 'node:events';
import * as path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { createContext, runInContext } from 'node:vm';
import { Subject } from 'rxjs';
import { HOSTILE } from './hostile-values.js';

/** A kind of value that an app may give to Nest. */
export type GivenValue = readonly [name: string, make: () => unknown];

class Plain {
  readonly name = 'plain';

  run() {
    return this.name;
  }
}

class Keys extends Array<string> {
  override [Symbol.iterator](): ArrayIterator<string> {
    throw new Error('nobody may iterate');
  }
}

const refuse = (): never => {
  throw new Error('nobody may look');
};

const getter = (name: PropertyKey) => Object.defineProperty({}, name, { get: refuse, enumerable: true });

async function* asyncGenerator() {
  yield 1;
}

function* generator() {
  yield 1;
}

const ofOtherRealm = (code: string): GivenValue => [
  `${code} of another realm`,
  () => runInContext(`(${code})`, createContext()) as unknown,
];

const PRIMITIVES: readonly GivenValue[] = [
  ...[null, true, false, 0, -0, NaN, Infinity, 42, 10n, '', 'text', '\uD83D'].map((value): GivenValue => [
    `the primitive ${typeof value} ${String(value)}`,
    () => value,
  ]),
  ['a symbol', () => Symbol('it')],
  ['a symbol of the language', () => Symbol.iterator],
];

const FUNCTIONS: readonly GivenValue[] = [
  ['an arrow function', () => () => 1],
  ['an async function', () => async () => 1],
  ['a generator function', () => generator],
  ['an async generator function', () => asyncGenerator],
  ['a class', () => class {}],
  ['a class that extends null', () => class extends (null as unknown as typeof Plain) {}],
  ['a bound function', () => refuse.bind(undefined)],
  ['a function without a prototype', () => Object.setPrototypeOf(() => 1, null) as unknown],
  ['a function whose prototype is no object', () => Object.assign(function () {}, { prototype: 1 })],
  ['a Proxy of a function', () => new Proxy(() => 1, {})],
  ['a method of the language', () => Array.prototype.map],
];

const OBJECTS: readonly GivenValue[] = [
  ['an object', () => ({})],
  ['an object without a prototype', () => Object.create(null) as unknown],
  ['a frozen object', () => Object.freeze({ a: {} })],
  ['a sealed object', () => Object.seal({})],
  ['an object that can not be extended', () => Object.preventExtensions({})],
  ['an object of a class', () => new Plain()],
  ['a frozen object of a class', () => Object.freeze(new Plain())],
  ['the prototype of a class', () => Plain.prototype],
  ['an heir of an object of a class', () => Object.create(new Plain()) as unknown],
  ['an object of a class that extends null', () => Object.create(Object.create(null) as object) as unknown],
  ['an object whose constructor is undefined', () => ({ constructor: undefined })],
  ['an object whose constructor is a text', () => ({ constructor: 'text' })],
  ['an object whose prototype has no constructor', () => Object.create({ constructor: null }) as unknown],
  ['an object whose class has a name that is a function', () => new (class { static name() {} } as unknown as typeof Plain)()], // prettier-ignore
  ['an object with a getter that throws', () => getter('value')],
  ['an object whose toStringTag throws', () => getter(Symbol.toStringTag)],
  ['an object whose iterator throws', () => getter(Symbol.iterator)],
  ['an object whose toPrimitive throws', () => getter(Symbol.toPrimitive)],
  ['an object that names itself', () => { const self: Record<string, unknown> = {}; return (self.self = self); }], // prettier-ignore
  ['an object with 2000 prototypes', () => chain(2000)],
  ['an object with a then that is no function', () => ({ then: 1 })],
  // eslint-disable-next-line prefer-rest-params
  ['arguments', () => (function (..._args: unknown[]) { return arguments; })(1, 'two')], // prettier-ignore
  ['the namespace of a module', () => path],
  ['a namespace of the language', () => Math],
  ['JSON', () => JSON],
  ['Reflect', () => Reflect],
  ['a Proxy of an object', () => new Proxy({}, {})],
  ['a Proxy of an object of a class', () => new Proxy(new Plain(), {})],
  ['an object of a class behind a Proxy', () => new new Proxy(Plain, {})()],
];

function chain(length: number): object {
  let object = {};
  for (let count = 0; count < length; count++) object = Object.create(object) as object;
  return object;
}

const OF_THE_PLATFORM: readonly GivenValue[] = [
  ...[Map, Set, WeakMap, WeakSet, Date, Error, Boolean, Number, String, ArrayBuffer, EventEmitter, EventTarget].map(
    (type): GivenValue => [`a ${type.name}`, () => new (type as new () => object)()],
  ),
  ...[AbortController, Headers, URLSearchParams, Blob, TextEncoder, PassThrough, ReadableStream, Subject].map(
    (type): GivenValue => [`a ${type.name}`, () => new (type as new () => object)()],
  ),
  ...[Uint8Array, Float64Array, BigInt64Array, SharedArrayBuffer].map((type): GivenValue => [
    `a ${type.name}`,
    () => new (type as new (size: number) => object)(8),
  ]),
  ['a DataView', () => new DataView(new ArrayBuffer(8))],
  ['a Buffer', () => Buffer.from('text')],
  ['a date that is none', () => new Date(NaN)],
  ['a RegExp', () => /text/g],
  ['a result of a RegExp', () => /(?<name>t)ext/d.exec('text')],
  ['a Symbol object', () => Object(Symbol('it')) as unknown],
  ['a BigInt object', () => Object(1n) as unknown],
  ['a WeakRef', () => new WeakRef({})],
  ['a Map with objects', () => new Map([[{}, new Plain()]])],
  ['a Set with objects', () => new Set([new Plain()])],
  ['a number format', () => new Intl.NumberFormat('en')],
  ['a URL', () => new URL('http://127.0.0.1')],
  ['a signal', () => AbortSignal.abort()],
  ['a Readable', () => Readable.from(['text'])],
  ['a Response', () => new Response('text')],
  ['a generator', () => generator()],
  ['an async generator', () => asyncGenerator()],
  ['an iterator of an array', () => [1].values()],
  ['an iterator whose next throws', () => Object.assign(Object.create(Object.getPrototypeOf([].values()) as object) as object, { next: refuse })], // prettier-ignore
  ...['{}', '[]', '["a"]', '[{}, [1]]', '() => 1', 'class {}', 'new (class It {})()', 'new Map()', 'new Date()', 'Object.create(null)', 'new Proxy({}, {})', 'Symbol("it")'].map(ofOtherRealm), // prettier-ignore
];

/** What only arrays can be. The spec also gives arrays of all other values. */
const ARRAYS: readonly GivenValue[] = [
  ['an empty array', () => []],
  ['an array of texts and numbers', () => ['a', 1, '', 0]],
  ['an array with holes', () => [, 'a', , {}]], // eslint-disable-line no-sparse-arrays
  ['an array of billions of holes', () => new Array(2 ** 32 - 1)],
  ['an array of billions of holes with an object', () => Object.assign(new Array(2 ** 32 - 1), { 4_000_000_000: {} })],
  ['an array with properties', () => Object.assign(['a'], { name: {}, constructor: 1 })],
  ['a frozen array', () => Object.freeze(['a', {}])],
  ['an array without a prototype', () => Object.setPrototypeOf(['a', {}], null) as unknown],
  ['an array of a class that throws when it is iterated', () => new Keys('a', 'b')],
  ['an array with a getter that throws', () => Object.defineProperty(['a', {}], 0, { get: refuse, enumerable: true })],
  ['an array that names itself', () => { const self: unknown[] = ['a']; self.push(self, [self]); return self; }], // prettier-ignore
  ['a hundred thousand numbers', () => Array.from({ length: 100_000 }, (_none, at) => at)],
  ['arrays in each other, ten thousand deep', () => { let deep: unknown[] = ['a']; for (let at = 0; at < 10_000; at++) deep = [deep]; return deep; }], // prettier-ignore
  ['a Proxy of an array', () => new Proxy(['a', {}], {})],
  ['a Proxy of an array of endless length', () => new Proxy([], { get: (of, name) => (name === 'length' ? Infinity : Reflect.get(of, name)) as unknown })], // prettier-ignore
];

/** Values that an app can give to Nest. */
export const GIVEN: readonly GivenValue[] = [...PRIMITIVES, ...FUNCTIONS, ...OBJECTS, ...OF_THE_PLATFORM, ...ARRAYS];

/** The traps of what looks at an object without reading or calling it. */
export const TRAPS_OF_LOOKS = ['getPrototypeOf', 'isExtensible', 'getOwnPropertyDescriptor', 'has', 'ownKeys'];

const TRAPS = [
  ...[...TRAPS_OF_LOOKS, 'setPrototypeOf', 'preventExtensions', 'defineProperty'],
  ...['get', 'set', 'deleteProperty', 'apply', 'construct'],
];

/** Makes a Proxy throw where any of these happens. */
export const throwing = <Target extends object>(...traps: readonly string[]): ProxyHandler<Target> =>
  Object.fromEntries(traps.map((trap) => [trap, refuse]));

/** Refuses all that it is asked, but that it is no promise and has no hooks. */
const onlyRead: ProxyHandler<object> = { ...throwing(...TRAPS), get: (_target, name) => typeof name === 'symbol' ? refuse() : undefined }; // prettier-ignore

const HANDLERS: readonly (readonly [string, ProxyHandler<object>])[] = [
  ...TRAPS.map((trap) => [`whose ${trap} throws`, throwing(trap)] as const),
  ['of which all throws', throwing(...TRAPS)],
  ['of which all throws but reading a name', onlyRead],
  ['that has no prototype', { getPrototypeOf: () => null }],
  ['with another prototype at each look', { getPrototypeOf: () => new Plain() }],
  ['with prototypes without an end', { getPrototypeOf: function endless() { return new Proxy({}, { getPrototypeOf: endless }); } }], // prettier-ignore
  ['that has all', { has: () => true, getOwnPropertyDescriptor: () => ({ value: 1, configurable: true }) }],
  ['that can not be written', { set: () => false, defineProperty: () => false }],
  ['that takes and keeps nothing', { set: () => true, defineProperty: () => true }],
];

const proxies = HANDLERS.flatMap(([how, handler]): GivenValue[] => [
  [`a Proxy ${how}`, () => new Proxy({}, handler)],
  [`a Proxy of an array ${how}`, () => new Proxy(['a', {}], handler)],
  [`a Proxy of a function ${how}`, () => new Proxy(function () {}, handler)],
  [`an object whose prototype is a Proxy ${how}`, () => Object.create(new Proxy({}, handler)) as unknown],
  [`an heir of that (${how})`, () => Object.create(Object.create(new Proxy({}, handler)) as object) as unknown],
  [`an array whose prototype is a Proxy ${how}`, () => Object.setPrototypeOf(['a', {}], new Proxy([], handler)) as unknown], // prettier-ignore
]);

const revoked = (of: object) => () => {
  const { proxy, revoke } = Proxy.revocable(of, {});
  revoke();
  return proxy;
};

/** Values of which Nest itself may refuse some. */
export const GUARDED: readonly GivenValue[] = [
  ...HOSTILE.map(([name, make]): GivenValue => [`a value ${name}`, make]),
  ...proxies,
  ['undefined', () => undefined],
  ['a revoked Proxy', revoked({})],
  ['a revoked Proxy of an array', revoked([])],
  ['a revoked Proxy of a function', revoked(() => 1)],
  ['an heir of a revoked Proxy', () => { const { proxy, revoke } = Proxy.revocable({}, {}); const heir = Object.create(proxy) as unknown; revoke(); return heir; }], // prettier-ignore
  ['an heir of an object whose constructor throws', () => Object.create(getter('constructor')) as unknown],
  ...['constructor', 'then', 'onModuleInit', 'onModuleDestroy'].map((name): GivenValue => [`an object whose ${name} throws`, () => getter(name)]), // prettier-ignore
  ['a promise', () => Promise.resolve(['a'])],
  ['a promise of an object', () => Promise.resolve(new Plain())],
  ['a thenable', () => ({ then: (done: (value: unknown) => void) => done('then') })],
  ['a thenable that throws', () => ({ then: refuse })],
];
