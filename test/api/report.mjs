// Says whether the public surface is what the reports beside this file say; "npm run api" writes them anew, to be seen
// in review.
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';

const ENTRIES = {
  'nest-redis-lock': 'dist/index.d.ts',
  'nest-redis-lock.opentelemetry': 'dist/opentelemetry/index.d.ts',
  'nest-redis-lock.page': 'dist/page/index.d.ts',
  'nest-redis-lock.prometheus': 'dist/prometheus/index.d.ts',
  'nest-redis-lock.terminus': 'dist/terminus/index.d.ts',
  'nest-redis-lock.testing': 'dist/testing/index.d.ts',
};
const FOLDER = import.meta.dirname;
const check = process.argv.includes('--check');

for (const [name, entry] of Object.entries(ENTRIES)) {
  const { config, unfit } = report(name, resolve(entry));
  if (check && unfit) {
    console.error(
      `${name}: the public surface has changed. See what "npm run api" writes, and commit it if it is meant.`,
    );
    process.exitCode = 1;
  }
  rmSync(config.reportTempFolder, { recursive: true, force: true });
}

function report(name, entry) {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: process.cwd(),
      mainEntryPointFilePath: entry,
      compiler: { tsconfigFilePath: resolve('tsconfig.build.json') },
      apiReport: {
        enabled: true,
        reportFileName: `${name}.api.md`,
        reportFolder: FOLDER,
        reportTempFolder: join(FOLDER, 'temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        compilerMessageReporting: { default: { logLevel: 'error' } },
        extractorMessageReporting: { default: { logLevel: 'none' } },
        tsdocMessageReporting: { default: { logLevel: 'none' } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: resolve('package.json'),
  });
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: !check,
    messageCallback: (message) => (message.handled = message.logLevel !== 'error'),
  });
  return { config, unfit: apiReportChanged };
}
