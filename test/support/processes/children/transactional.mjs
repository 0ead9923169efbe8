// Builds an app whose method has both @Transactional and @WithLock, in the order of the argument; says how its calls
// went, or why it did not start.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsPluginTransactional, Transactional } from '@nestjs-cls/transactional';
import { ClsModule } from 'nestjs-cls';
import { RedisLockModule, LockService, WithLock } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';

const [order] = process.argv.slice(2);
const journal = [];

class Payments {
  async pay(id) {
    journal.push(`pay ${id}`);
  }
}

const descriptor = Object.getOwnPropertyDescriptor(Payments.prototype, 'pay');
const decorators = { outside: Transactional(), inside: WithLock('payment') };
for (const place of order === 'lock above' ? ['outside', 'inside'] : ['inside', 'outside'])
  decorators[place](Payments.prototype, 'pay', descriptor);
Object.defineProperty(Payments.prototype, 'pay', descriptor);
Injectable()(Payments);

class AppModule {}
let locks;
const note = async (what) => journal.push(`${what}${(await locks.isLocked('payment')) ? ', locked' : ''}`);
const adapter = {
  connection: {},
  optionsFactory: () => ({
    async wrapWithTransaction(_options, work) {
      await note('begin');
      await work();
      await note('commit');
    },
    getFallbackInstance: () => ({}),
  }),
};
Module({
  imports: [
    RedisLockModule.forRoot({ store: new MemoryLockStore() }),
    ClsModule.forRoot({
      global: true,
      middleware: { mount: false },
      plugins: [new ClsPluginTransactional({ adapter })],
    }),
  ],
  providers: [Payments],
})(AppModule);

try {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
  locks = app.get(LockService);
  await Promise.all([app.get(Payments).pay('1'), app.get(Payments).pay('2')]);
  await app.close();
  process.send({ journal });
} catch (error) {
  process.send({ code: error.code, message: error.message });
}
process.disconnect();
