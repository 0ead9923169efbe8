import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const TOO_LONG_MS = 30 * 60_000;

/** The groups of processes that run now. */
const groups = new Set();

/**
 * Runs one spec at full size, in a process of its own. Answers its figures, and what failed in it. Nothing that it
 * started is left then.
 */
export async function runSpec(spec, folder) {
  const [figures, results] = ['figures', 'results'].map((what) => `${folder}/${spec.replaceAll('/', '-')}.${what}`);
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const child = spawn(process.execPath, [...jest, '--runTestsByPath', spec, '--json', '--outputFile', results], {
    stdio: ['ignore', 'ignore', 'inherit'],
    // Whatever it leaves in its folders goes with this one.
    env: { ...process.env, LAB: 'long', LAB_FIGURES: figures, TMPDIR: folder },
    detached: true,
  });
  groups.add(child.pid);
  const tooLong = setTimeout(() => end(child.pid), TOO_LONG_MS);
  await new Promise((done) => child.once('close', done));
  clearTimeout(tooLong);
  end(child.pid);
  return { figures: linesOf(figures), failed: failuresIn(results).map((name) => `${spec}: ${name}`) };
}

/** Ends all that run, with everything they have started. */
export function endAll() {
  for (const pid of [...groups]) end(pid);
}

function end(pid) {
  groups.delete(pid);
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}

const linesOf = (file) =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    : [];

function failuresIn(file) {
  if (!existsSync(file)) return ['it did not come to its end'];
  const { testResults, success } = JSON.parse(readFileSync(file, 'utf8'));
  const names = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  );
  return names.length > 0 || success ? names : ['it did not start'];
}
