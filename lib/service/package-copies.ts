import { filesOfStack } from '../errors/stack-files.js';
import { logger } from '../log/logger.js';
import { mistake } from '../errors/mistakes.js';

/** The global property with the folders of all copies of the package in this process. */
const COPIES = Symbol.for('nest-redis-lock:copies');
/** This file: as it is written, or in the package. */
const THIS_FILE = /[\\/](?:service[\\/]package-copies|dist[\\/]nest(?:-redis-lock)?)\.\w+$/;

/**
 * Notes the folder of this copy of the package, and warns if another copy is loaded, too: their classes and tokens are
 * not the same.
 */
export function noteCopy(): void {
  const file = filesOfStack().find((file) => THIS_FILE.test(file));
  if (!file) return; // in an app's own bundle
  const copies = ((globalThis as { [COPIES]?: Set<string> })[COPIES] ??= new Set());
  const folder = file.replace(THIS_FILE, '');
  if (copies.has(folder)) return;
  copies.add(folder);
  if (copies.size === 1) return;
  const what =
    `This app loads ${copies.size} copies of nest-redis-lock: ${[...copies].join(' and ')}. ` +
    'A class that imports one of them does not find the RedisLockModule of another: ' +
    "Nest can't resolve its LockService, or its calls are refused with LockNotWiredError.";
  logger.warn(
    mistake(what, [
      'Let all packages of the app have one copy: ' +
        '"npm ls nest-redis-lock" (or "pnpm why", "yarn why") shows who asks ' +
        'for which; a library names it in its peerDependencies.',
      'If the versions are the same, as in a workspace or with pnpm, make those of its peers the same, too ' +
        '(ioredis, @nestjs/common), or run "npm dedupe".',
    ]),
  );
}
