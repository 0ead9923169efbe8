import { appConfig } from '../../../../sample-app/dist/src/config/app.config.js';
import { DatabaseModule } from '../../../../sample-app/dist/src/database/database.module.js';
import { DemoModule } from '../../../../sample-app/dist/src/demo/demo.module.js';
import { boot } from './locks.mjs';

/** Boots some modules of the sample, with its database. */
export async function bootSample({ redisUrl, databaseUrl, lease }, ...modules) {
  class Config {}
  const config = {
    module: Config,
    global: true,
    providers: [{ provide: appConfig.KEY, useValue: { databaseUrl } }],
    exports: [appConfig.KEY],
  };
  const { app } = await boot({ connection: redisUrl, lease }, [config, DatabaseModule, DemoModule, ...modules]);
  return app;
}
