/**
 * What a mock of a library answers, or an object that guards itself: nobody may find a stream in it, or fail by
 * looking.
 */

const everything = (): unknown => () => undefined;

/** Throws when any property is read. `await` reads one, so it is wrapped where it is awaited. */
export const throwing = (): object =>
  new Proxy(
    {},
    {
      get: (_target, name) => {
        if (name === 'then') return undefined;
        throw new Error(`nobody may read ${String(name)}`);
      },
      has: (_target, name) => {
        throw new Error(`nobody may look for ${String(name)}`);
      },
      getPrototypeOf: () => {
        throw new Error('nobody may ask for the prototype');
      },
      getOwnPropertyDescriptor: () => {
        throw new Error('nobody may ask for descriptors');
      },
    },
  );

/** As `createMock()` of @golevelup/ts-jest: a function for every property but `then`. */
export const mocked = (): object =>
  new Proxy({}, { get: (_target, name) => (name === 'then' ? undefined : everything()), set: () => true });

/**
 * As `mockDeep()` of jest-mock-extended: a mock, which is a function, for every property; it says that it has each of
 * them.
 */
export function deeplyMocked(): object {
  return new Proxy(() => undefined, {
    get: (_target, name) => (name === 'then' ? undefined : deeplyMocked()),
    has: () => true,
    apply: () => undefined,
  });
}

/** An object that says that it has everything, and answers a function to each. */
export const boastful = (): object =>
  new Proxy({}, { get: (_target, name) => (name === 'then' ? undefined : everything()), has: () => true });

/** Inherits from one, so it is no Proxy itself. */
export const heir = (): object => Object.create(mocked()) as object;

/** Not a Proxy, but with getters that throw. */
export class Prickly {
  get subscribe(): never {
    throw new Error('nobody may read subscribe');
  }

  get lift(): never {
    throw new Error('nobody may read lift');
  }

  get next(): never {
    throw new Error('nobody may read next');
  }
}

export const HOSTILE: readonly [name: string, make: () => object][] = [
  ['that throws on each look', throwing],
  ['of createMock()', mocked],
  ['of mockDeep()', deeplyMocked],
  ['that has everything', boastful],
  ['that inherits from a mock', heir],
  ['whose getters throw', () => new Prickly()],
  ['that is frozen', () => Object.freeze({})],
];
