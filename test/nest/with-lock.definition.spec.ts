import { describe, expect, it } from '@jest/globals';
import { LockOptionsError, WithLock } from 'nest-redis-lock';

/** What the compiler refuses, and JavaScript lets through. */
const anyDecorator = (key: unknown, options?: unknown) => WithLock(key as string, options as object) as MethodDecorator & PropertyDecorator & ClassDecorator;

describe('a class is refused with LockOptionsError when it is defined, naming the option,', () => {
  const withOptions = (options: unknown) => () => {
    class Jobs {
      @anyDecorator('job', options)
      async run() {}
    }
    return Jobs;
  };

  it.each(['durability', 'retries', 'token', 'toString', '__proto__'])('for the option "%s", which there is not', (option) => {
    const options: unknown = JSON.parse(`{ ${JSON.stringify(option)}: 1 }`);
    expect(withOptions(options)).toThrow(LockOptionsError);
    expect(withOptions(options)).toThrow(new RegExp(`no option "${option}".*\\bwait\\b.*\\blease\\b.*\\bmaxWaiters\\b`));
  });

  it('telling all the options there are', () => {
    expect(withOptions({ retries: 1 })).toThrow(/(?=.*\bmodule\b)(?=.*\bonTimeout\b)(?=.*\bonLost\b)(?=.*\bsignal\b)/);
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
  ])('for %s: %p', (option, value) => {
    expect(withOptions({ [option]: value })).toThrow(LockOptionsError);
    expect(withOptions({ [option]: value })).toThrow(new RegExp(`"${option}" is .*must be `));
  });

  it.each<[unknown, string]>([
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
    ['soon', '"soon"'],
    [-1, '-1'],
  ])('and the value %p as it was given', (wait, shown) => {
    expect(withOptions({ wait })).toThrow(`"wait" is ${shown},`);
  });

  it.each([null, 'skip', 5, true])('for options that are %p instead of an object', (options) => {
    expect(withOptions(options)).toThrow(LockOptionsError);
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

  it('a method that says it returns a plain value', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        run(): string {
          return '';
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run\(\) does not return a promise.*Make it async/);
  });

  it('a method that returns nothing, so that its work has no end', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        run() {
          setImmediate(() => [1].map((one) => {
            return one;
          }));
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run\(\) does not return a promise/);
  });

  it('a generator', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        *run() {
          yield 1;
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run\(\) does not return a promise/);
  });

  it('a private method, where a compiler lets it', () => {
    const standard = WithLock('job') as unknown as (method: () => void, context: object) => void;
    expect(() => standard(() => undefined, { kind: 'method', name: '#run', private: true })).toThrow(/private method #run.*keyword "private"/);
    expect(() => standard(() => undefined, { kind: 'method', name: 'run', private: false })).toThrow(/"experimentalDecorators": true/);
  });
});

