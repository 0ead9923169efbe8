import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockOptionsError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { Observable, of } from 'rxjs';

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

  it.each(['scope', 'durability', 'retries', 'token', 'toString', '__proto__'])('for the option "%s", which there is not', (option) => {
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

  it('a method that says it returns an Observable', () => {
    expect(() => {
      class Jobs {
        @anyDecorator('job')
        run(): Observable<number> {
          return of(1);
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run\(\) does not return a promise.*lastValueFrom/);
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
    }).toThrow(/Jobs\.run\(\) does not return a promise/);
  });
});

describe('a call is refused with LockOptionsError when the method returns', () => {
  @Injectable()
  class Streams {
    @anyDecorator('stream')
    observable() {
      return of(1);
    }

    @anyDecorator('stream')
    async promisedObservable() {
      return of(1);
    }

    @anyDecorator('stream')
    async *asyncIterator() {
      yield 1;
    }
  }

  let module: TestingModule;

  beforeAll(async () => {
    module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Streams] }).compile();
  });

  afterAll(() => module.close());

  it.each([
    ['an Observable', 'observable'],
    ['a promise of an Observable', 'promisedObservable'],
    ['an async iterator', 'asyncIterator'],
  ] as const)('%s, whose work would go on without the lock', async (_what, method) => {
    await expect(module.get(Streams)[method]()).rejects.toBeInstanceOf(LockOptionsError);
  });
});
