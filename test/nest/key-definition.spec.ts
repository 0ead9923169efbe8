import { describe, expect, it } from '@jest/globals';
import { Param, Query, type Type } from '@nestjs/common';
import { LockOptionsError, WithLock } from 'nest-redis-lock';
import ts from 'typescript';
import { boot } from './boot.js';

/** A class of which one method has this key. */
function withKey(key: string | string[]) {
  class Accounts {
    @WithLock(key)
    async transfer(from: string, { iban: to }: { iban: string }, ...notes: string[]) {
      return [from, to, notes];
    }
  }
  return Accounts;
}

describe('a key template at boot', () => {
  it.each(['a:<from>', 'a:<to>', 'a:<0>', 'a:<1.iban>', 'a:<2>', ['<from>', '<to>'], 'plain', '{a}:b', 'a#{<from>}'])(
    'an app starts with the key %j, which fits its method',
    async (key) => {
      await boot(withKey(key));
    },
  );

  it.each([
    [
      'a name that no parameter has',
      'a:<userId>',
      /"a:<userId>" of Accounts\.transfer\(\) names <userId>\. Known names: from, to\b/,
    ],
    ['several names that no parameter has', 'a:<userId>:<id>', /names <userId> and <id>\. Known names: from, to\b/],
    [
      'several keys that do not fit',
      ['a:<userId>', 'b:<id>'],
      /"a:<userId>".*names <userId>.*\s[^]*"b:<id>".*names <id>/,
    ],
    ['a path from a name that no parameter has', 'a:<user.id>', /names <user\.id>\. Known names: from, to\b/],
    ['one unknown name among several keys', ['a:<from>', 'a:<userId>'], /"a:<userId>".*names <userId>/],
    ['"<" without ">"', 'a:<from', /"<" or ">" without its partner/],
    ['">" without "<"', 'a:from>', /"<" or ">" without its partner/],
    ['"<" inside "<>"', 'a:<<from>>', /"<" or ">" without its partner/],
    ['"${from}" in plain quotes', 'a:${from}', /"a:\$\{from\}".* has "\$\{from\}".*\s+[^]*Write <from>\./],
    ['"#{from}"', 'a:#{to.iban}:<from>', /has "#\{to\.iban\}"[^]*Write <to\.iban>\./],
    ['an expression in "${}"', 'a:${from.trim()}', /has "\$\{from\.trim\(\)\}"[^]*one of these: .*<userId>/],
    ['"${}"', ['a:<from>', 'a:${}'], /"a:\$\{\}".* has "\$\{\}"/],
    ['an empty placeholder', 'a:<>', /placeholder <>/],
    ['a space in a placeholder', 'a:<from >', /placeholder <from >/],
    ['an expression', 'a:<from || to>', /placeholder <from \|\| to>/],
    ['a path with a gap', 'a:<from..id>', /placeholder <from\.\.id>\.[^]*a path into it/],
    ['a "%", with which characters of values are escaped', 'a:50%<from>', /has a "%"/],
    ['an empty template', '', /non-empty template/],
    ['an empty template among several', ['a:<from>', ''], /non-empty template/],
    ['no key at all', [], /non-empty template/],
    ['undefined', undefined, /non-empty template.*undefined/],
    ['null', null, /non-empty template.*null/],
    ['a number', 42, /non-empty template.*42/],
    ['a bigint', 42n, /non-empty template.*42/],
  ])('an app does not start with a key that has %s', async (_what, key, message) => {
    const Accounts = withKey(key as string);
    await expect(boot(Accounts)).rejects.toBeInstanceOf(LockOptionsError);
    await expect(boot(Accounts)).rejects.toThrow(message);
  });

  it('the error at boot lists the known names: those that @Param and @Query give, and the parameters', async () => {
    class Accounts {
      @WithLock('a:<id>')
      async get(@Param('userId') uid: string, @Query('q') text: string) {
        return [uid, text];
      }
    }
    await expect(boot(Accounts)).rejects.toThrow(/Known names: (?=.*\buserId\b)(?=.*\bq\b)(?=.*\buid\b)(?=.*\btext\b)/);
  });

  it('an app does not start with a key whose route name could mean two parameters', async () => {
    class Accounts {
      @WithLock('a:<id>')
      async get(@Param('id') one: string, @Query('id') two: string) {
        return [one, two];
      }
    }
    await expect(boot(Accounts)).rejects.toThrow(/names <id>/);
  });

  it('an app does not start with a key by name when its class has no readable source', async () => {
    const old = (key: string) => {
      function Old() {}
      const get = { value: async (id: string) => id };
      WithLock(key)(Old.prototype as object, 'get', get);
      Object.defineProperty(Old.prototype, 'get', get);
      return Old as unknown as Type;
    };
    expect(Object.getOwnPropertyDescriptor(old('a:<0>').prototype, 'get')).toMatchObject({ writable: true });
    await expect(boot(old('a:<id>'))).rejects.toThrow(/The names of its parameters can't be read\.[^]*<0>/);
    await boot(old('a:<0>'));
  });

  describe('of a method that tsc has compiled', () => {
    const compiled = (target: ts.ScriptTarget, method: string) => {
      const { outputText } = ts.transpileModule(`class Accounts { ${method} }`, { compilerOptions: { target } });
      // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is our own code
      const define = new Function(`${outputText}\nreturn Accounts;`) as () => Type;
      const Accounts = define();
      const prototype = Accounts.prototype as object;
      const transfer = Object.getOwnPropertyDescriptor(prototype, 'transfer')!;
      WithLock('a:<from>')(prototype, 'transfer', transfer);
      Object.defineProperty(prototype, 'transfer', transfer);
      return Accounts;
    };

    it.each(["async transfer(from, to = 'x') {}", 'async transfer({ from }) {}', 'async *transfer(from, to = 1) {}'])(
      'the error at boot tells of a target that changes the names of "%s"',
      async (method) => {
        await expect(boot(compiled(ts.ScriptTarget.ES2016, method))).rejects.toThrow(
          /names <from>\. Known names: \w+\.[^]*- Compile for ES2018 or later/,
        );
        await boot(compiled(ts.ScriptTarget.ES2018, method));
      },
    );

    it('the error at boot says nothing of the target where it keeps the names', async () => {
      await expect(boot(compiled(ts.ScriptTarget.ES2016, 'async transfer(of, to) {}'))).rejects.toThrow(
        /names <from>\. Known names: of, to\.(?![^]*Compile for)/,
      );
    });
  });

  it.each(['a:<from><to>', 'a:<from>of<to>'])(
    'an app does not start with the key %j, where nothing keeps the two values apart',
    async (key) => {
      await expect(boot(withKey(key))).rejects.toThrow(/nothing between them[^]*Put ":" there/);
    },
  );
});

describe('parameter names', () => {
  it('the parameter names are read from a class that only parses as part of a module', async () => {
    class Files {
      @WithLock('file:<name>')
      async read(name: string) {
        return new URL(name, import.meta.url);
      }
    }
    await boot(Files);
  });

  it('the parameter names are read from a class inside another, whose private fields it uses', async () => {
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
    await boot(new Bank().accounts());
  });
});
