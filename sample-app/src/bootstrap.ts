import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { setUpApp } from './app.setup.js';
import { appConfig, type AppConfig } from './config/app.config.js';

/** Starts the app, and returns when it listens. It stops on SIGTERM and SIGINT. */
export async function bootstrap(): Promise<INestApplication> {
  const app = await NestFactory.create(AppModule);
  setUpApp(app);
  app.enableShutdownHooks();
  const { port } = app.get<AppConfig>(appConfig.KEY);
  await app.listen(port, '127.0.0.1');
  return app;
}
