import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockOptionsError } from 'nest-redis-lock';
import { LockPageModule, type LockPageModuleOptions } from 'nest-redis-lock/page';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { resolvePageOptions } from '../../lib/page/lock-page.options.js';

const guard = { canActivate: () => true };

describe('The options of the page', () => {
  it.each(['production', 'staging', '', undefined])(
    'without guards, the app does not start where NODE_ENV is %j',
    (environment) => {
      const resolve = (options: LockPageModuleOptions) => () => resolvePageOptions(options, environment);
      expect(resolve({})).toThrow(
        /no guards, so everybody .* would see the keys .*\n\nPotential solutions:\n- .*guards/,
      );
      expect(resolve({ guards: [] })).toThrow(LockOptionsError);
      expect(resolve({ actions: { guards: [guard] } })).toThrow(LockOptionsError);
      expect(resolve({ actions: true, openToEverybody: true })).toThrow(/could take any lock away/);
      expect(resolve({ guards: [guard], actions: true })).not.toThrow();
      expect(resolve({ openToEverybody: true })).not.toThrow();
      expect(resolve({ openToEverybody: true, actions: { guards: [guard] } })).not.toThrow();
    },
  );

  it('without forRoot(), the app does not start: it would have no page', async () => {
    const app = Test.createTestingModule({ imports: [LockTestingModule.forRoot(), LockPageModule] }).compile();
    await expect(app).rejects.toThrow(/Import LockPageModule\.forRoot\(\{ guards/);
  });

  it.each(['development', 'test'])('without guards, the app starts where NODE_ENV is %j', (environment) => {
    expect(resolvePageOptions({ actions: true }, environment)).toMatchObject({ path: 'locks', actions: true });
  });

  it.each<[options: unknown, says: RegExp]>([
    [{ guard: [] }, /no option "guard". Did you mean "guards"\?/],
    [{ guards: [undefined] }, /"guards" is .*an array of guards/],
    [{ guards: guard }, /"guards" is/],
    [{ guards: [guard], imports: class AuthModule {} }, /"imports" is .*an array of modules/],
    [{ guards: [class Empty {}] }, /"guards" is/],
    [{ actions: 'yes' }, /"actions" is "yes"/],
    [{ actions: { guards: [] } }, /"actions" is .*at least one guard/],
    [{ actions: {} }, /"actions.guards" is/],
    [{ path: 'locks/:id' }, /"path" is "locks\/:id"/],
    [{ path: '' }, /"path" is/],
    [{ path: '..' }, /"path" is/],
    [{ path: 'a/../b' }, /"path" is/],
    [{ openToEverybody: 1 }, /"openToEverybody" is 1/],
    [{ module: undefined }, /"module" is undefined/],
    [null, /takes an object of options/],
  ])('a mistake in %j is an error at boot that says what is allowed', (options, says) => {
    expect(() => LockPageModule.forRoot(options as LockPageModuleOptions)).toThrow(says);
  });
});
