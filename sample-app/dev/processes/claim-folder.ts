import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Reserves a folder for this process, by a file beside it. Returns null when another running process has it. */
export function claimFolder(folder: string): { release(): void } | null {
  const file = `${folder}.pid`;
  mkdirSync(dirname(file), { recursive: true });

  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    const owner = Number(readFileSync(file, 'utf8'));
    if (owner !== process.pid && isRunning(owner)) return null;
    writeFileSync(file, String(process.pid));
  }
  return { release: () => rmSync(file, { force: true }) };
}

function isRunning(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
