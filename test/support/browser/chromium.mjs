import { existsSync } from 'node:fs';
import { aptInstall } from '../apt-install.mjs';

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Answers the path of Chromium, or Chrome: `CHROMIUM=/path/to/it npm run test:slow` for another. */
export function chromiumPath() {
  const path = [process.env.CHROMIUM, ...PLACES].find((path) => path && existsSync(path));
  if (path) return path;
  throw new Error(
    'The tests of the lock page need Chromium or Chrome: "sudo apt-get install chromium", "brew install chromium", ' +
      'or name its path in the variable CHROMIUM.',
  );
}

/** Finds Chromium, or installs it where it may, or says what to install. */
export function chromiumInstalled() {
  aptInstall('chromium', () => {
    try {
      return chromiumPath() !== '';
    } catch {
      return false;
    }
  });
  chromiumPath();
}
