import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { Database } from './database.js';
import { migrate } from './migrate.js';

@Global()
@Module({ providers: [Database], exports: [Database] })
export class DatabaseModule implements OnModuleInit {
  constructor(private readonly database: Database) {}

  async onModuleInit(): Promise<void> {
    await migrate(this.database);
  }
}
