import { NestFactory } from '@nestjs/core';
import type { AddressInfo } from 'node:net';
import { AppModule } from './app.module.js';
import { readOptions, readPort } from './app.options.js';
import { setUpApp } from './app.setup.js';
import { migrate } from './database/migrate.js';
import { runProcess } from './processes/run-process.js';

/** What an app process tells its parent when it is ready. */
export interface AppReport {
  readonly url: string;
}

await runProcess<AppReport>(async () => {
  const options = readOptions(process.env);
  const port = readPort(process.env);
  await migrate(options.databaseUrl);

  const app = await NestFactory.create(AppModule.register(options), { abortOnError: false });
  setUpApp(app);
  await app.listen(port, '127.0.0.1');

  const { port: actualPort } = app.getHttpServer().address() as AddressInfo;
  return {
    report: { url: `http://127.0.0.1:${actualPort}` },
    // Runs Nest's shutdown hooks: requests are finished, locks released, connections closed.
    stop: () => app.close(),
  };
});
