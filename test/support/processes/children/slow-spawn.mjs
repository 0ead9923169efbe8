// Loaded before the command line: says what is started, and stands still for longer than a short lease when that is the
// watcher of `run`.
import childProcess from 'node:child_process';
import { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const STANDS_STILL_MS = 1500;
const { spawn } = childProcess;

childProcess.spawn = (file, args, options) => {
  const isWatcher = args[0]?.endsWith('watcher.js');
  writeSync(1, `starts ${isWatcher ? 'the watcher' : file}\n`);
  const child = spawn(file, args, options);
  if (isWatcher) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STANDS_STILL_MS);
  return child;
};
syncBuiltinESMExports();
