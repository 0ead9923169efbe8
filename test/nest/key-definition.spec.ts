import { describe, expect, it } from '@jest/globals';
import { Param, Query } from '@nestjs/common';
import { LockOptionsError, WithLock } from 'nest-redis-lock';

/** Defines a class of which one method has this key. */
function withKey(key: string | string[]) {
  return () => {
    class Accounts {
      @WithLock(key)
      async transfer(from: string, { iban: to }: { iban: string }, ...notes: string[]) {
        return [from, to, notes];
      }
    }
    return Accounts;
  };
}

describe('a class whose key template does not fit is refused when it is defined', () => {
  it.each(['a:<from>', 'a:<to>', 'a:<0>', 'a:<1.iban>', 'a:<2>', ['<from>', '<to>'], 'plain'])('but not with %j', (key) => {
    expect(withKey(key)).not.toThrow();
  });

  it.each([
    ['a name that no parameter has', 'a:<userId>', /"a:<userId>" of Accounts\.transfer\(\) names <userId>\. The parameters are: from, to\b/],
    ['a path from a name that no parameter has', 'a:<user.id>', /names <user\.id>\. The parameters are: from, to\b/],
    ['one unknown name among several keys', ['a:<from>', 'a:<userId>'], /"a:<userId>".*names <userId>/],
    ['"<" without ">"', 'a:<from', /"<" or ">" without its partner/],
    ['">" without "<"', 'a:from>', /"<" or ">" without its partner/],
    ['"<" inside "<>"', 'a:<<from>>', /"<" or ">" without its partner/],
    ['an empty placeholder', 'a:<>', /placeholder <>/],
    ['a space in a placeholder', 'a:<from >', /placeholder <from >/],
    ['an expression', 'a:<from || to>', /neither a name, a path/],
    ['a path with a gap', 'a:<from..id>', /neither a name, a path/],
    ['an empty template', '', /non-empty template/],
    ['an empty template among several', ['a:<from>', ''], /non-empty template/],
    ['no key at all', [], /non-empty template/],
    ['undefined', undefined, /non-empty template.*undefined/],
    ['null', null, /non-empty template.*null/],
    ['a number', 42, /non-empty template.*42/],
    ['a bigint', 42n, /non-empty template.*42/],
  ])('with %s', (_what, key, message) => {
    expect(withKey(key as string)).toThrow(LockOptionsError);
    expect(withKey(key as string)).toThrow(message);
  });

  it('naming the names there are: those that @Param and @Query give, and the parameters', () => {
    expect(() => {
      class Accounts {
        @WithLock('a:<id>')
        async get(@Param('userId') uid: string, @Query('q') text: string) {
          return [uid, text];
        }
      }
      return Accounts;
    }).toThrow(/The parameters are: (?=.*\buserId\b)(?=.*\bq\b)(?=.*\buid\b)(?=.*\btext\b)/);
  });

  it('when a route name could mean two parameters', () => {
    expect(() => {
      class Accounts {
        @WithLock('a:<id>')
        async get(@Param('id') one: string, @Query('id') two: string) {
          return [one, two];
        }
      }
      return Accounts;
    }).toThrow(/names <id>/);
  });

  it('when the build has shortened the names of the parameters, instead of making a wrong key', () => {
    expect(() => {
      class A {
        @WithLock('a:<userId>')
        async g(e: string) {
          return e;
        }
      }
      return A;
    }).toThrow(/names <userId>\. The parameters are: e\b/);
  });

  it('when its source can not be read as a class, but a position still works', () => {
    function Old() {}
    const method = { value: async (id: string) => id };

    expect(() => WithLock('a:<id>')(Old.prototype as object, 'get', method)).toThrow(/parameter names can't be read.*<0>/);
    expect(() => WithLock('a:<0>')(Old.prototype as object, 'get', method)).not.toThrow();
  });

  it.each(['a:<from><to>', 'a:<from>of<to>'])('with %j, where nothing that is escaped keeps the two values apart', (key) => {
    expect(withKey(key)).toThrow(LockOptionsError);
  });
});

describe('the parameter names are read', () => {
  it('from a class that only parses as part of a module', () => {
    expect(() => {
      class Files {
        @WithLock('file:<name>')
        async read(name: string) {
          return new URL(name, import.meta.url);
        }
      }
      return Files;
    }).not.toThrow();
  });

  it('from a class inside another, whose private fields it uses', () => {
    class Bank {
      readonly #rate = 1;

      accounts() {
        class Accounts {
          @WithLock('account:<id>')
          async interest(id: string, bank: Bank) {
            return [id, bank.#rate];
          }
        }
        return Accounts;
      }
    }
    expect(() => new Bank().accounts()).not.toThrow();
  });
});
