import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { relative } from 'node:path';
import { reason } from '../../src/errors/reason.js';
import { claimFolder } from './claim-folder.js';
import type { ServiceReport } from './service-report.js';
import { runProcess } from './run-process.js';
import { SharedPglite } from './shared-pglite.js';

// Real Postgres, compiled to WebAssembly. One process can own its folder, so the apps share it through a socket.
await runProcess<ServiceReport>(async () => {
  const [folder] = process.argv.slice(2);
  const claim = folder ? claimFolder(folder) : null;
  const database = new SharedPglite(claim ? folder : undefined);
  await database.waitReady.catch((error: unknown) => {
    claim?.release();
    throw new Error(
      `The embedded Postgres cannot start: ${reason(error)}${folder ? `. Try again without ${folder}` : ''}`,
    );
  });

  const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0, maxConnections: 100 });
  await server.start();
  return {
    report: {
      url: `postgres://postgres:postgres@${server.getServerConn()}/postgres`,
      name: `embedded Postgres, ${describeData(folder, claim !== null)}`,
    },
    stop: async () => {
      await server.stop();
      await database.close();
      claim?.release();
    },
  };
});

function describeData(folder: string | undefined, isClaimed: boolean): string {
  if (!folder) return 'data in memory';
  const path = relative(process.cwd(), folder);
  return isClaimed ? `data in ${path}` : `data in memory (${path} is used by another process)`;
}
