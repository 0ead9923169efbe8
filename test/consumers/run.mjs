// Packs the library, installs the tarball into fresh apps, type-checks them strictly, and runs them on a Redis.
// "npm run consumers" takes this Node; "npm run consumers -- --all" the oldest and newest of each line that is
// supported, too.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { withRedis } from '../bench/redis.mjs';
import redisServerInstalled from '../support/redis/redis-server-installed.mjs';
import { pack } from './tarball.mjs';

const run = promisify(execFile);
const { devDependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const ALL = process.argv.includes('--all');
const NODES = ALL ? ['20.19.0', '20', '22.12.0', '22', '24'] : [];

const NEST_12 = versions(
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  '@nestjs/terminus',
  '@nestjs/testing',
);
const NEST_11 = Object.fromEntries(Object.keys(NEST_12).map((name) => [name, '^11.0.0']));

/** What TypeORM, BullMQ 5 and others ask for. */
const IOREDIS_5 = { ioredis: '^5.11.0' };

/** TypeScript 5 is the app's own, as its `tsc` would get into the way of ours; 6 and 7 are those of this repository. */
const COMPILERS = [5, 6, 7];

/** Of each: what Nest's own project templates of that time say. `compilers`: who can read such a project. */
const APPS = [
  { name: 'NestJS 12, ESM', type: 'module', nest: NEST_12, module: 'nodenext', compilers: COMPILERS },
  {
    name: 'NestJS 11, CommonJS',
    type: 'commonjs',
    nest: { ...NEST_11, ...IOREDIS_5 },
    module: 'nodenext',
    compilers: ALL ? COMPILERS : [7],
  },
  {
    name: 'NestJS 11, CommonJS, the older way to find modules',
    type: 'commonjs',
    nest: { ...NEST_11, ...IOREDIS_5 },
    module: 'commonjs',
    compilers: [5],
  },
];

const TYPEORM_APP = { name: 'NestJS 12 with TypeORM', folder: 'typeorm', module: 'nodenext', compilers: [7] };
const ROLLING_MOVE = {
  name: 'A rolling move',
  folder: 'rolling-move',
  module: 'nodenext',
  compilers: [7],
  skipLibCheck: true,
};

const OPENTELEMETRY = {
  name: 'OpenTelemetry SDK 3',
  folder: 'opentelemetry',
  module: 'nodenext',
  compilers: [7],
};
/** Those that it runs on. */
const OPENTELEMETRY_NODES = ALL ? ['22.15.0', '24'] : ['24'];
const OPENTELEMETRY_PACKAGES = {
  '@opentelemetry/api': '~1.10.0',
  '@opentelemetry/context-async-hooks': '~3.1.0',
  '@opentelemetry/exporter-metrics-otlp-http': '~0.301.0',
  '@opentelemetry/exporter-trace-otlp-http': '~0.301.0',
  '@opentelemetry/instrumentation': '~0.301.0',
  '@opentelemetry/instrumentation-http': '~0.301.0',
  '@opentelemetry/instrumentation-ioredis': '~0.72.0',
  '@opentelemetry/sdk-metrics': '~3.1.0',
  '@opentelemetry/sdk-trace': '~3.1.0',
};

redisServerInstalled();
const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-'));
try {
  const tarball = pack(folder);
  await lint(tarball);
  const nodes = [process.execPath, ...(await Promise.all(NODES.map(node)))];
  await withRedis(undefined, async ({ url }) => {
    const installed = new Map();
    for (const app of APPS) {
      const dependencies = JSON.stringify(app.nest);
      if (!installed.has(dependencies))
        installed.set(dependencies, await install(app, tarball, join(folder, `app-${installed.size}`)));
      await check(app, installed.get(dependencies), nodes, { REDIS_URL: url });
      await command(app, installed.get(dependencies), url);
    }
    await typeorm(tarball, url);
    await rollingMove(tarball, url);
    await openTelemetry(tarball, url);
  });
  if (ALL) await unitTest(tarball, join(folder, 'jest'));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function versions(...names) {
  return Object.fromEntries(names.map((name) => [name, devDependencies[name]]));
}

/**
 * What publint and "Are the types wrong?" have to say of the tarball. That a CommonJS app loads an ES module is what we
 * mean.
 */
async function lint(tarball) {
  await step('publint', run('npx', ['--no-install', 'publint', 'run', tarball, '--strict']));
  await step(
    'attw',
    run('npx', [
      '--no-install',
      'attw',
      tarball,
      '--ignore-rules',
      'cjs-resolves-to-esm',
      '--no-emoji',
      '--format',
      'ascii',
    ]),
  );
}

/** The Node of this version, which npm has as a package. */
async function node(version) {
  const home = join(folder, `node-${version}`);
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), '{ "private": true }');
  await run('npm', ['install', '--no-fund', '--no-audit', `node@${version}`], { cwd: home });
  return join(home, 'node_modules', 'node', 'bin', 'node');
}

async function install({ name, type, nest }, tarball, home) {
  cpSync(join(import.meta.dirname, 'app'), home, { recursive: true });
  cpSync('test/nest/with-lock.types.ts', join(home, 'types.ts'));
  writeReadmeApp(home);
  const dependencies = {
    ...versions('ioredis', 'reflect-metadata', 'rxjs', '@types/node', '@codegenie/serverless-express'),
    ...versions('@opentelemetry/api', 'prom-client'),
    ...nest,
    'nest-redis-lock': `file:${tarball}`,
  };
  for (const peer of Object.keys(peerDependencies)) assert.ok(dependencies[peer], `the apps do not install ${peer}`);
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({ private: true, type, dependencies, devDependencies: { typescript: '~5.9.3' } }),
  );
  await step(`${name}: npm install`, run('npm', ['install', '--no-fund', '--no-audit'], { cwd: home }));
  return home;
}

/** An app of NestJS 12 with these packages beside ours. */
async function installBeside({ name, folder: source }, packages, tarball) {
  const home = join(folder, source);
  cpSync(join(import.meta.dirname, source), home, { recursive: true });
  const nest = versions('@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs', '@types/node');
  const dependencies = { ...nest, ...packages, 'nest-redis-lock': `file:${tarball}` };
  writeFileSync(join(home, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
  await step(`${name}: npm install`, run('npm', ['install', '--no-fund', '--no-audit'], { cwd: home }));
  return home;
}

/** Runs the command of the package, as people type it. */
async function command({ name }, home, url) {
  const npx = (...args) =>
    run('npx', ['--no-install', 'nest-redis-lock', ...args], { cwd: home, env: { ...process.env, REDIS_URL: url } });
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const { stdout: shown } = await step(`${name}: npx nest-redis-lock --version`, npx('--version'));
  assert.equal(shown, `${version}\n`);
  const { stdout: ran } = await step(
    `${name}: npx nest-redis-lock run`,
    npx('run', 'nightly', '--', 'sh', '-c', 'echo "locked $LOCK_KEY"'),
  );
  assert.equal(ran, 'locked nightly\n');
}

/** Runs an app with TypeORM on a real Postgres. */
async function typeorm(tarball, url) {
  const packages = { '@nestjs/typeorm': '^12.0.0', typeorm: '^1.1.0', ...versions('pg', '@types/pg'), ...IOREDIS_5 };
  const home = await installBeside(TYPEORM_APP, packages, tarball);
  const database = await PGlite.create();
  const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0 });
  await server.start();
  try {
    const DATABASE_URL = `postgres://postgres:postgres@${server.getServerConn()}/postgres`;
    await check(TYPEORM_APP, home, [process.execPath], { REDIS_URL: url, DATABASE_URL });
  } finally {
    await server.stop();
    await database.close();
  }
}

/** Runs what users come from and this package, on one Redis. */
async function rollingMove(tarball, url) {
  const redlock = {
    redlock: '5.0.0-beta.2',
    'redlock-4': 'npm:redlock@^4.2.0',
    '@anchan828/nest-redlock': '^0.4.26',
  };
  const home = await installBeside(ROLLING_MOVE, { murlock: '^4.4.0', ...redlock, ...versions('ioredis') }, tarball);
  await check(ROLLING_MOVE, home, [process.execPath], { REDIS_URL: url });
}

/**
 * Runs an app with the newest SDK of OpenTelemetry; then our specs on that: those with exporters in memory, and two
 * instrumented apps that export by OTLP.
 */
async function openTelemetry(tarball, url) {
  const packages = { ...OPENTELEMETRY_PACKAGES, ...versions('ioredis', '@nestjs/platform-express') };
  const [home, ...nodes] = await Promise.all([
    installBeside(OPENTELEMETRY, packages, tarball),
    ...OPENTELEMETRY_NODES.map(node),
  ]);
  await check(OPENTELEMETRY, home, nodes, { REDIS_URL: url });
  const app = join(home, 'traced-app.mjs');
  cpSync('test/support/processes/children/traced-app.mjs', app);
  const specs = ['test/nest/opentelemetry', 'test/redis/holder-trace', 'test/processes/opentelemetry'];
  const jest = [
    ...['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'],
    ...['--config', 'test/consumers/opentelemetry/jest.config.mjs', ...specs],
  ];
  const env = { ...process.env, NODE_OPTIONS: '', OPENTELEMETRY_APP: home, TRACED_APP: app };
  for (const node of nodes) await step(`${OPENTELEMETRY.name}: our specs`, run(node, jest, { env }));
}

/** Runs Jest in an app of NestJS 11, with each configuration that the guide on testing shows. */
async function unitTest(tarball, home) {
  cpSync(join(import.meta.dirname, 'jest'), home, { recursive: true });
  const own = {
    ...versions('ioredis', 'reflect-metadata', 'rxjs', '@types/node', '@swc/core', '@swc/jest'),
    'nest-redis-lock': `file:${tarball}`,
  };
  const dependencies = { ...NEST_11, ...own, jest: '^30.0.0', 'ts-jest': '^29.0.0', typescript: '~5.9.3' };
  writeFileSync(join(home, 'package.json'), JSON.stringify({ private: true, type: 'commonjs', dependencies }));
  await step('Jest: npm install', run('npm', ['install', '--no-fund', '--no-audit'], { cwd: home }));
  const configs = [...readFileSync('docs/guides/testing.md', 'utf8').matchAll(/^```json\n([\s\S]*?)^```/gm)].map(
    ([, json]) => JSON.parse(json),
  );
  for (const [index, module] of ['nodenext', 'commonjs'].entries()) {
    const compilerOptions = {
      target: 'es2022',
      module,
      esModuleInterop: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      skipLibCheck: true,
    };
    if (module === 'nodenext') compilerOptions.isolatedModules = true;
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    writeFileSync(
      join(home, 'jest.config.json'),
      JSON.stringify({ ...configs[index], testRegex: '/accounts\\.test\\.ts$' }),
    );
    await step(
      `Jest, ${module}`,
      run(process.execPath, ['node_modules/jest/bin/jest.js', '--config', 'jest.config.json'], {
        cwd: home,
        env: { ...process.env, NODE_OPTIONS: '' },
      }),
    );
  }
}

/** What Nest's project template has and the README adds to it to get started, on our Redis. */
function writeReadmeApp(home) {
  const blocks = [...readFileSync('README.md', 'utf8').matchAll(/^```ts\n\/\/ (src\/\S+)\n([\s\S]*?)^```/gm)];
  assert.ok(blocks.length >= 3, 'the README shows no app');
  cpSync(join(import.meta.dirname, 'template'), join(home, 'src'), { recursive: true });
  for (const [, file, code] of blocks)
    writeFileSync(join(home, file), code.replace("'redis://127.0.0.1:6379'", "process.env['REDIS_URL'] ?? ''"));
}

async function check({ name, module, compilers, skipLibCheck = false }, home, nodes, settings) {
  const compilerOptions = {
    target: 'es2022',
    module,
    types: ['node'],
    esModuleInterop: true,
    strict: true,
    skipLibCheck,
    noUncheckedIndexedAccess: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    rootDir: '.',
    outDir: 'dist',
  };
  writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts', 'src'] }));
  for (const compiler of compilers) {
    const tsc = {
      5: join(home, 'node_modules/.bin/tsc'),
      6: resolve('node_modules/.bin/tsc6'),
      7: resolve('node_modules/.bin/tsc'),
    }[compiler];
    const { stdout: version } = await run(tsc, ['--version']);
    assert.match(version, new RegExp(`^Version ${compiler}\\.`));
    await step(`${name}: TypeScript ${compiler}`, run(tsc, ['-p', home]));
  }
  for (const node of nodes) {
    const { stdout: version } = await run(node, ['--version']);
    const app = run(node, ['dist/main.js'], {
      cwd: home,
      env: { ...process.env, ...settings, NODE_OPTIONS: '' },
      timeout: 30_000,
    });
    const { stdout } = await step(`${name}: Node ${version.trim()}`, app);
    assert.equal(stdout, 'works\n');
  }
}

async function step(what, running) {
  const began = performance.now();
  try {
    const result = await running;
    console.log(`${what}: ok (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    console.error(`${what}: ${error.killed ? 'hung' : 'failed'}`);
    throw error; // it has what the command said
  }
}
