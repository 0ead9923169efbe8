import { describe, expect, it } from '@jest/globals';
import { CurrentLock, InjectLocks, LockOptionsError, WithLock } from 'nest-redis-lock';
import { boot } from './boot.js';

/** What the compiler refuses, and JavaScript lets through. */
const anyDecorator = (key: unknown, options?: unknown) =>
  WithLock(key as string, options as object) as MethodDecorator & PropertyDecorator & ClassDecorator;

describe('options of @WithLock at boot', () => {
  const withOptions = (options: unknown) => {
    class Jobs {
      @anyDecorator('job', options)
      async run() {}
    }
    return Jobs;
  };

  it.each(['durability', 'retries', 'token', 'toString', '__proto__'])(
    'an app does not start with the unknown option "%s", and lists the known ones',
    async (option) => {
      const options: unknown = JSON.parse(`{ ${JSON.stringify(option)}: 1 }`);
      await expect(boot(withOptions(options))).rejects.toBeInstanceOf(LockOptionsError);
      await expect(boot(withOptions(options))).rejects.toThrow(
        new RegExp(
          `@WithLock on Jobs\\.run\\(\\): There is no option "${option}".*\\bwait\\b.*\\blease\\b.*\\bmaxWaiters\\b`,
        ),
      );
    },
  );

  it('an app that does not start because of an unknown option says which options @WithLock has', async () => {
    await expect(boot(withOptions({ retries: 1 }))).rejects.toThrow(
      /(?=.*\bmodule\b)(?=.*\bonTimeout\b)(?=.*\bonLost\b)(?=.*\bsignal\b)/,
    );
  });

  it.each<[string, unknown]>([
    ['wait', -1],
    ['wait', 'soon'],
    ['wait', NaN],
    ['wait', ''],
    ['wait', null],
    ['wait', 10n],
    ['lease', 99],
    ['lease', '99ms'],
    ['lease', Infinity],
    ['lease', {}],
    ['maxHold', 0],
    ['maxHold', '-1s'],
    ['watchdog', 'yes'],
    ['watchdog', 0],
    ['maxWaiters', -1],
    ['maxWaiters', 1.5],
    ['maxWaiters', '3'],
    ['maxWaiters', 3n],
    ['reentrant', null],
    ['signal', new AbortController()],
    ['onLost', 'skip'],
    ['onTimeout', 'ignore'],
    ['onTimeout', null],
    ['scope', 'method'],
    ['scope', null],
    ['module', ''],
    ['module', 5],
    ['module', null],
  ])(
    'an app does not start with %s: %p, and names the method, the option and what is allowed',
    async (option, value) => {
      const Jobs = withOptions({ [option]: value });
      await expect(boot(Jobs)).rejects.toBeInstanceOf(LockOptionsError);
      await expect(boot(Jobs)).rejects.toThrow(new RegExp(`@WithLock on Jobs\\.run\\(\\): "${option}" is .*must be `));
    },
  );

  it.each<[unknown, string]>([
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
    ['soon', '"soon"'],
    [-1, '-1'],
  ])('an app that does not start because of wait: %p shows the value as it was given', async (wait, shown) => {
    await expect(boot(withOptions({ wait }))).rejects.toThrow(`"wait" is ${shown},`);
  });

  it.each([null, 'skip', 5, true])(
    'an app does not start with %p in the place of the options of @WithLock',
    async (options) => {
      await expect(boot(withOptions(options))).rejects.toThrow(/The options of @WithLock must be an object/);
    },
  );
});

describe('@WithLock in a place where it can not work', () => {
  it('a class whose static method has @WithLock is refused when it is defined', () => {
    expect(() => {
      class Jobs {
        @WithLock('job')
        static async run() {}
      }
      return Jobs;
    }).toThrow(/static Jobs\.run\(\)/);
  });

  it('a class whose getter has @WithLock is refused when it is defined', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        get run() {
          return Promise.resolve();
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run, which is not a method/);
  });

  it('a class whose property has @WithLock is refused when it is defined, even if it holds a function', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        run = async () => undefined;
      }
      return Jobs;
    }).toThrow(/Jobs\.run, which is not a method/);
  });

  it('a class that has @WithLock itself is refused when it is defined', () => {
    expect(() => {
      @anyDecorator('job')
      class Jobs {}
      return Jobs;
    }).toThrow(LockOptionsError);
  });

  it('a class whose private method has @WithLock is refused when it is defined, where a compiler lets it', () => {
    const standard = WithLock('job') as unknown as (method: () => void, context: object) => void;
    expect(() => standard(() => undefined, { kind: 'method', name: '#run', private: true })).toThrow(
      /private method #run.*keyword "private"/,
    );
    expect(() => standard(() => undefined, { kind: 'method', name: 'run', private: false })).toThrow(
      /"experimentalDecorators": true/,
    );
  });
});

describe('decorators that are misused', () => {
  const standard = (decorator: unknown, context: object) => () =>
    (decorator as (value: unknown, context: object) => void)(undefined, context);
  const field = { kind: 'field', name: 'locks' };
  const parameter =
    (decorator: unknown, prototype: object, ...place: unknown[]) =>
    () =>
      (decorator as (prototype: object, ...place: unknown[]) => void)(prototype, ...place);
  class Jobs {
    async run() {}
  }

  it.each<[what: string, use: () => unknown, message: RegExp]>([
    [
      '@InjectLocks() as a standard decorator',
      standard(InjectLocks(), field),
      /@InjectLocks on locks was compiled as a standard decorator.*"experimentalDecorators": true/,
    ],
    [
      '@InjectLocks of a named module as a standard decorator',
      standard(InjectLocks('billing'), field),
      /@InjectLocks on locks was compiled/,
    ],
    [
      '@CurrentLock() as a standard decorator',
      standard(CurrentLock(), { kind: 'method', name: 'run' }),
      /@CurrentLock on run was compiled as a standard/,
    ],
    [
      '@WithLock as a standard decorator of a class',
      standard(WithLock('job'), { kind: 'class', name: 'Jobs' }),
      /@WithLock on Jobs was compiled as a standard/,
    ],
    [
      '@WithLock without brackets',
      () => (WithLock as unknown as MethodDecorator)(Jobs.prototype, 'run', {}),
      /@WithLock needs a key/,
    ],
    [
      '@WithLock without brackets as a standard decorator',
      standard(WithLock, { kind: 'method', name: 'run' }),
      /@WithLock needs a key/,
    ],
    ['@CurrentLock without brackets', parameter(CurrentLock, Jobs.prototype, 'run', 0), /write @CurrentLock\(\)/],
    [
      '@CurrentLock() on the constructor',
      parameter(CurrentLock(), Jobs, undefined, 0),
      /@CurrentLock\(\) of Jobs stands on a parameter of its constructor/,
    ],
    [
      '@CurrentLock() on a static method',
      parameter(CurrentLock(), Jobs, 'make', 0),
      /@CurrentLock\(\) of Jobs stands on a parameter of the static make\(\)/,
    ],
    [
      '@CurrentLock() on a property',
      parameter(CurrentLock(), Jobs.prototype, 'lock'),
      /@CurrentLock\(\) stands on Jobs\.lock, which is no parameter/,
    ],
  ])('%s is refused with LockOptionsError when the class is defined', (_what, use, message) => {
    expect(use).toThrow(LockOptionsError);
    expect(use).toThrow(message);
  });
});

it.each<[what: string, key: unknown, message: RegExp]>([
  [
    'a list of templates with a hole',
    Object.assign(new Array<string>(2), ['job']),
    /must be a non-empty template, an array of them, or a function, not undefined/,
  ],
  ['no templates', [], /not an array/],
  ['templates in a list of their own', [['job']], /not an array/],
  ['a String object', Object('job'), /not an object \(String\)/],
  ['a symbol', Symbol('job'), /not Symbol\(job\)/],
  ['half a surrogate pair', 'job:\uD83D', /has half a surrogate pair in it/],
])('an app does not start with a key that is %s', async (_what, key, message) => {
  class Jobs {
    @anyDecorator(key)
    async run() {}
  }
  await expect(boot(Jobs)).rejects.toBeInstanceOf(LockOptionsError);
  await expect(boot(Jobs)).rejects.toThrow(message);
});
