// An app with TypeORM, which wants ioredis 5: it installs beside this package, and no update of a balance is lost.
// It has none of the optional peers: it starts, and an entry that needs one says which.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Redis } from 'ioredis';
import { RedisLockModule, WithLock } from 'nest-redis-lock';
import { Column, Entity, PrimaryColumn, Repository } from 'typeorm';

const redisUrl = process.env['REDIS_URL'] ?? '';
const databaseUrl = process.env['DATABASE_URL'] ?? '';

@Entity()
class Account {
  @PrimaryColumn({ type: 'text' })
  id!: string;

  @Column({ type: 'int' })
  balance!: number;
}

@Injectable()
class Accounts {
  constructor(@InjectRepository(Account) private readonly accounts: Repository<Account>) {}

  async open(id: string, balance: number): Promise<void> {
    await this.accounts.insert({ id, balance });
  }

  @WithLock('account:<id>')
  async withdraw(id: string, amount: number): Promise<number> {
    const account = await this.accounts.findOneByOrFail({ id });
    account.balance -= amount;
    return (await this.accounts.save(account)).balance;
  }
}

async function main(): Promise<void> {
  const redis = new Redis(redisUrl);
  assert.ok(!('protocol' in redis.options), 'this is not ioredis 5');

  @Module({
    imports: [
      TypeOrmModule.forRoot({
        type: 'postgres',
        url: databaseUrl,
        entities: [Account],
        synchronize: true,
        poolSize: 1,
      }),
      TypeOrmModule.forFeature([Account]),
      RedisLockModule.forRoot({ connection: redis }),
    ],
    providers: [Accounts],
  })
  class AppModule {}

  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  const accounts = app.get(Accounts);
  await accounts.open('42', 1000);
  const balances = await Promise.all([200, 300].map((amount) => accounts.withdraw('42', amount)));
  assert.equal(Math.min(...balances), 500);
  await app.close();
  assert.equal(await redis.ping(), 'PONG');
  await redis.quit();
  for (const [entry, peer] of Object.entries({ prometheus: 'prom-client', opentelemetry: '@opentelemetry/api' }))
    await assert.rejects(import(String(`nest-redis-lock/${entry}`)), {
      code: 'ERR_MODULE_NOT_FOUND',
      message: new RegExp(`Cannot find package '${peer}'`),
    });
  console.log('works');
}

void main();
