import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { SCENARIOS } from '../../sample-app/dev/scenarios/all.js';
import { withBrowser, type OpenPage } from '../support/browser/with-browser.js';
import { until } from '../support/deferred.js';
import { LONG } from '../support/lab.js';

// Each demonstration starts three processes and lets crowds come to them.
jest.setTimeout(120_000);

// `npm test` has built it.
const LAUNCHER = fileURLToPath(new URL('../../sample-app/dist/dev/launcher.js', import.meta.url));

describe('The page of the sample, in a browser', () => {
  let open: OpenPage;
  withBrowser((given) => (open = given));

  let launcher: ChildProcess;
  let url = '';

  beforeAll(async () => {
    const env = { ...process.env, PORT: '0', DATABASE_URL: '', REDIS_URL: '' };
    launcher = spawn(process.execPath, [LAUNCHER], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    launcher.stdout!.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await until(() => /Ready: \S+/.test(output), 60_000);
    url = /Ready: (\S+)/.exec(output)![1]!;
  });

  afterAll(async () => {
    const ended = once(launcher, 'exit');
    launcher.kill('SIGTERM');
    await ended;
  });

  // All of them run by themselves in shop-rounds: here it is about the page.
  const shown = LONG ? SCENARIOS.map(({ name }) => name) : ['orders', 'interest'];

  it.each(shown)('%s has accidents without its lock, and none with it', async (name) => {
    const page = await open(url);
    await page.locator(`#${name} button`).click();
    await page.getByText(': done. The processes have ended.').waitFor({ timeout: 60_000 });
    const accident = await page.locator(`#${name} .without .verdict.bad`).textContent();
    expect(accident).toMatch(/^[1-9]\d* .+: .+\. Expected: /);
    expect(await page.locator(`#${name} .with .verdict.good`).textContent()).toMatch(/^No accident: /);
    expect(await page.locator('#scenarios button:disabled').count()).toBe(0);
  });

  it('the live stage shows where the lock goes when its holder dies, stalls, or loses Redis', async () => {
    const page = await open(url);
    const act = (action: string) => page.locator(`[data-action=${action}]:enabled`).click({ timeout: 30_000 });
    const seen = (text: string) => page.locator('.seen li', { hasText: text }).waitFor({ timeout: 30_000 });

    await act('start');
    await act('kill');
    await seen('was killed while it held the lock');
    await seen('s after');
    await act('stall');
    await seen('stands still');
    await seen('The database refused: another one has written with a larger fence.');
    await act('add');
    await seen('D has joined.');
    await act('redis');
    await seen('Redis is away');
    await seen('Redis is back');

    expect(await page.locator('.lanes tbody tr').count()).toBe(4);
    expect(await page.locator('.lanes tr.killed').count()).toBe(1);
    expect(await page.locator('.lost').textContent()).toBe('0');
    await act('stop');
    await page.getByText('The lock, live: done.').waitFor({ timeout: 30_000 });
    expect(await page.locator('[data-action=start]:enabled').count()).toBe(1);
  });

  it('a demonstration that runs is seen by everybody, and nobody can start another one', async () => {
    const [one, other] = [await open(url), await open(url)];
    await one.locator('#balance button').click();
    await other.getByText('the crowd comes to 3 processes').waitFor({ timeout: 30_000 });
    expect(await other.locator('button:enabled').count()).toBe(0);
    await other.getByText(': done. The processes have ended.').waitFor({ timeout: 60_000 });
  });
});
