import { describe, expect, it } from '@jest/globals';
import { LockOptionsError, WithLock } from 'nest-redis-lock';
import { boot } from './boot.js';

/** What the compiler refuses, and JavaScript lets through. */
const anyDecorator = (key: unknown, options?: unknown) => WithLock(key as string, options as object) as MethodDecorator & PropertyDecorator & ClassDecorator;

describe('an app does not start with options that there are not, or that are wrong: it names the method, the option and what is allowed', () => {
  const withOptions = (options: unknown) => {
    class Jobs {
      @anyDecorator('job', options)
      async run() {}
    }
    return Jobs;
  };

  it.each(['durability', 'retries', 'token', 'toString', '__proto__'])('for the option "%s", which there is not', async (option) => {
    const options: unknown = JSON.parse(`{ ${JSON.stringify(option)}: 1 }`);
    await expect(boot(withOptions(options))).rejects.toBeInstanceOf(LockOptionsError);
    await expect(boot(withOptions(options))).rejects.toThrow(new RegExp(`@WithLock on Jobs\\.run\\(\\): There is no option "${option}".*\\bwait\\b.*\\blease\\b.*\\bmaxWaiters\\b`));
  });

  it('telling all the options there are', async () => {
    await expect(boot(withOptions({ retries: 1 }))).rejects.toThrow(/(?=.*\bmodule\b)(?=.*\bonTimeout\b)(?=.*\bonLost\b)(?=.*\bsignal\b)/);
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
    expect(() => standard(() => undefined, { kind: 'method', name: '#run', private: true })).toThrow(/private method #run.*keyword "private"/);
    expect(() => standard(() => undefined, { kind: 'method', name: 'run', private: false })).toThrow(/"experimentalDecorators": true/);
  });
});

