import { describe, expect, it } from '@jest/globals';
import { CurrentLock, InjectLocks, LockOptionsError, WithLock } from 'nest-redis-lock';
import { boot } from './boot.js';

/** What the compiler refuses, and JavaScript lets through. */
const anyDecorator = (key: unknown, options?: unknown) =>
  WithLock(key as string, options as object) as MethodDecorator & PropertyDecorator & ClassDecorator;

describe('an app does not start with options that there are not, or that are wrong: it names the method, the option and what is allowed', () => {
  const withOptions = (options: unknown) => {
    class Jobs {
      @anyDecorator('job', options)
      async run() {}
    }
    return Jobs;
  };

  it.each(['durability', 'retries', 'token', 'toString', '__proto__'])(
    'for the option "%s", which there is not',
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

  it('telling all the options there are', async () => {
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
  ])('for %s: %p', async (option, value) => {
    const Jobs = withOptions({ [option]: value });
    await expect(boot(Jobs)).rejects.toBeInstanceOf(LockOptionsError);
    await expect(boot(Jobs)).rejects.toThrow(new RegExp(`@WithLock on Jobs\\.run\\(\\): "${option}" is .*must be `));
  });

  it.each<[unknown, string]>([
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
    ['soon', '"soon"'],
    [-1, '-1'],
  ])('and the value %p as it was given', async (wait, shown) => {
    await expect(boot(withOptions({ wait }))).rejects.toThrow(`"wait" is ${shown},`);
  });

  it.each([null, 'skip', 5, true])('for options that are %p instead of an object', async (options) => {
    await expect(boot(withOptions(options))).rejects.toThrow(/The options of @WithLock must be an object/);
  });
});

describe('a class is refused with LockOptionsError when it is defined, where @WithLock stands on', () => {
  it('a static method', () => {
    expect(() => {
      class Jobs {
        @WithLock('job')
        static async run() {}
      }
      return Jobs;
    }).toThrow(/static Jobs\.run\(\)/);
  });

  it('a getter', () => {
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

  it('a property, even one that holds a function', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        run = async () => undefined;
      }
      return Jobs;
    }).toThrow(/Jobs\.run, which is not a method/);
  });

  it('the class itself', () => {
    expect(() => {
      @anyDecorator('job')
      class Jobs {}
      return Jobs;
    }).toThrow(LockOptionsError);
  });

  it('a private method, where a compiler lets it', () => {
    const standard = WithLock('job') as unknown as (method: () => void, context: object) => void;
    expect(() => standard(() => undefined, { kind: 'method', name: '#run', private: true })).toThrow(
      /private method #run.*keyword "private"/,
    );
    expect(() => standard(() => undefined, { kind: 'method', name: 'run', private: false })).toThrow(
      /"experimentalDecorators": true/,
    );
  });
});

describe('where a decorator is misused, the class is refused with LockOptionsError:', () => {
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
  ])('%s', (_what, use, message) => {
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
