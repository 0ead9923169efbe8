import { expect, it } from '@jest/globals';
import { type ModuleMetadata, type Provider, Scope } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { GIVEN, type GivenValue, GUARDED, throwing, TRAPS_OF_LOOKS } from '../support/given-values.js';

/** A value in an app, with what its provider has made of it. */
interface Given {
  readonly name: string;
  readonly token: string;
  readonly make: () => unknown;
  made: unknown;
}

type Way = readonly [
  name: string,
  provide: (given: Given) => Provider[],
  place?: (providers: Provider[]) => ModuleMetadata,
];

class Exporting {}

const factory = ({ token, make }: Given, scope = Scope.DEFAULT) => ({ provide: token, scope, useFactory: make });

const WAYS: readonly Way[] = [
  [
    'by a factory that lets nobody look at it',
    ({ token, make }) => [{ provide: token, useFactory: new Proxy(make, throwing<() => unknown>(...TRAPS_OF_LOOKS)) }],
  ],
  ['by useValue', ({ token, make }) => [{ provide: token, useValue: make() }]],
  ['by a factory', (given) => [factory(given)]],
  ['by an async factory', ({ token, make }) => [{ provide: token, useFactory: async () => make() }]],
  ['by a factory for each request', (given) => [factory(given, Scope.REQUEST)]],
  ['by a transient factory', (given) => [factory(given, Scope.TRANSIENT)]],
  ['by useExisting', (given) => [{ ...factory(given), provide: `of ${given.token}` }, { provide: given.token, useExisting: `of ${given.token}` }]], // prettier-ignore
  [
    'by useClass, whose constructor returns it',
    ({ token, make }) => [
      {
        provide: token,
        useClass: class {
          constructor() {
            return make() as object;
          }
        },
      },
    ],
  ],
  [
    'by a factory that injects it',
    (given) => [
      { ...factory(given), provide: `of ${given.token}` },
      { provide: given.token, inject: [`of ${given.token}`], useFactory: (value: unknown) => value },
    ],
  ],
  [
    'from a dynamic module that exports it',
    (given) => [factory(given)],
    (providers) => ({ imports: [{ module: Exporting, providers, exports: providers }] }),
  ],
];

const inArray = ([name, make]: GivenValue): GivenValue => [`an array with ${name}`, () => [make(), [make()]]];
const SOUND = [...GIVEN, ...GIVEN.map(inArray), ...GUARDED.map(inArray)];

/** Starts an app with values, and ends it. Returns what became of each value; an error where the app did not start. */
async function outcomeOf(
  [, provide, place = (providers) => ({ providers })]: Way,
  values: readonly GivenValue[],
  imports: ModuleMetadata['imports'] = [],
): Promise<readonly string[] | Error> {
  const given = values.map(([name, make], at): Given => {
    const one: Given = { name, token: `value ${at}`, made: undefined, make: () => (one.made = make()) };
    return one;
  });
  let module: TestingModule | undefined;
  try {
    const metadata = place(given.flatMap(provide));
    module = await Test.createTestingModule({
      ...metadata,
      imports: [...imports, ...(metadata.imports ?? [])],
    }).compile();
    await module.init();
    return await Promise.all(given.map((one) => fateOf(module!, one)));
  } catch (error) {
    return error instanceof Error ? error : new Error('something else was thrown');
  } finally {
    await module?.close().catch(() => undefined);
  }
}

async function fateOf(module: TestingModule, given: Given): Promise<string> {
  let got: unknown;
  try {
    got = module.get(given.token, { strict: false });
  } catch {
    const resolved = await module.resolve(given.token, undefined, { strict: false }).then((value: unknown) => [value], () => undefined); // prettier-ignore
    if (!resolved) return `${given.name} fails`;
    [got] = resolved;
  }
  return `${given.name} is ${Object.is(got, given.made) ? 'it' : 'something else'}`;
}

/** Returns the values with which an app does not start. */
async function refused(
  way: Way,
  values: readonly GivenValue[],
  imports?: ModuleMetadata['imports'],
): Promise<readonly GivenValue[]> {
  const outcome = await outcomeOf(way, values, imports);
  if (!(outcome instanceof Error)) return [];
  if (values.length === 1) return values;
  const half = values.length >> 1;
  return [
    ...(await refused(way, values.slice(0, half), imports)),
    ...(await refused(way, values.slice(half), imports)),
  ];
}

it.each(WAYS)(
  'an app that starts with values %s also starts with this module, and they are the same',
  async (...way) => {
    const ofNest = new Set(await refused(way, GUARDED));
    const values = [...SOUND, ...GUARDED.filter((value) => !ofNest.has(value))];
    expect(values.length).toBeGreaterThan(500);
    const imports = [LockTestingModule.forRoot()];

    const [without, withModule] = [await outcomeOf(way, values), await outcomeOf(way, values, imports)];
    if (withModule instanceof Error)
      expect((await refused(way, values, imports)).map(([name]) => name)).toEqual(['none of them']);
    expect(withModule).toEqual(without);
  },
);
