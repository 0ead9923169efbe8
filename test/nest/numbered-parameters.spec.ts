import { describe, expect, it } from '@jest/globals';
import { Body, Param, Query } from '@nestjs/common';
import { keyResolver } from '../../lib/decorators/key/key-resolver.js';

/** With the names that esbuild gives where `user` and `from` are at the top level of the file or bundle, too. */
class Numbered {
  async mergeInto(user2: string, user22: string): Promise<unknown> {
    return [user2, user22];
  }

  async transfer(from2: string, to: string): Promise<unknown> {
    return [from2, to];
  }
}

/** In the source, the second parameter is called as the first one in the route. */
class NumberedRoutes {
  async move(@Param('account') member: string, @Body('target') account2: string): Promise<unknown> {
    return [member, account2];
  }

  async show(@Param('account') account2: string, @Query('from') from: string): Promise<unknown> {
    return [account2, from];
  }
}

class AsWritten {
  async both(user: string, user2: string, user22: string): Promise<unknown> {
    return [user, user2, user22];
  }

  async rows(row2: string, row21: string): Promise<unknown> {
    return [row2, row21];
  }
}

const keyOf = (of: object, method: string, template: string) => keyResolver(template, of, method, method);

describe('A parameter that esbuild has numbered', () => {
  it.each([
    ['mergeInto', 'user:<user2>'],
    ['mergeInto', 'user:<user>'],
    ['transfer', 'account:<from>'],
  ])('is not taken for another one: %s, %s', (method, template) => {
    expect(() => keyOf(Numbered.prototype, method, template)).toThrow(/esbuild.* numbers those .*<0> is the first/s);
  });

  it('is not taken for the one to which a decorator of the route gives its name', () => {
    expect(() => keyOf(NumberedRoutes.prototype, 'move', 'account:<account>')).toThrow(
      /esbuild.*member, account2|member, account2.*esbuild/s,
    );
    expect(keyOf(NumberedRoutes.prototype, 'show', 'account:<account>')(['A', 'B'])).toBe('account:A');
  });

  it('can be named by its position, and others by their names', () => {
    expect(keyOf(Numbered.prototype, 'mergeInto', 'user:<1>')(['A', 'B'])).toBe('user:B');
    expect(keyOf(Numbered.prototype, 'transfer', 'account:<to>')(['A', 'B'])).toBe('account:B');
  });

  it.each([
    ['both', '<user2>', 'B'],
    ['both', '<user22>', 'C'],
    ['rows', '<row2>', 'A'],
  ])('is not seen where people number: %s, %s', (method, template, value) => {
    expect(keyOf(AsWritten.prototype, method, template)(['A', 'B', 'C'])).toBe(value);
  });
});
