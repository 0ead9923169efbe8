import { NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
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

  const server: Server = app.getHttpServer();
  const { port: actualPort } = server.address() as AddressInfo;
  return {
    report: { url: `http://127.0.0.1:${actualPort}` },
    stop: async () => {
      // Browsers open connections in advance and don't use them; Node would wait for those too.
      const hangUp = setTimeout(() => server.closeAllConnections(), 1_000);
      await app.close();
      clearTimeout(hangUp);
    },
  };
});
