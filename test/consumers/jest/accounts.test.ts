// A unit test in an app as the template of NestJS 11 makes it: CommonJS, Jest and ts-jest.
import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockTimeoutError, WithLock } from 'nest-redis-lock';
import { LockPageModule } from 'nest-redis-lock/page';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async withdraw(id: string): Promise<string> {
    return id;
  }
}

it('a locked method of a CommonJS app rejects when its key is busy', async () => {
  const app = await Test.createTestingModule({
    // The page finds its files.
    imports: [LockTestingModule.forRoot(), LockPageModule.forRoot({ openToEverybody: true })],
    providers: [Accounts],
  }).compile();
  expect(await app.get(Accounts).withdraw('42')).toBe('42');
  app.get(TestLockService).simulate({ busy: 'account:42' });
  await expect(app.get(Accounts).withdraw('42')).rejects.toThrow(LockTimeoutError);
  await app.close();
});
