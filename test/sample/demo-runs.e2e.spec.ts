import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Locator, Page } from 'playwright-core';
import { Demonstrations } from '../../sample-app/dev/demo/demonstrations.js';
import { SCENARIOS } from '../../sample-app/dev/scenarios/all.js';
import { startBank, type SimulatedBank } from '../../sample-app/dev/simulated-bank.js';
import { withBrowser, type OpenPage } from '../support/browser/with-browser.js';
import { until } from '../support/deferred.js';
import { ShopRows } from './shop-rows.js';

// Each demonstration starts three processes and lets crowds come to them.
jest.setTimeout(120_000);

// `npm test` has built it.
const LAUNCHER = fileURLToPath(new URL('../../sample-app/dist/dev/launcher.js', import.meta.url));

describe('The page of the sample, in a browser', () => {
  let open: OpenPage;
  withBrowser((given) => (open = given));

  let launcher: ChildProcess;
  let ended: Promise<unknown[]>;
  let url = '';
  let bank: SimulatedBank;
  let database: pg.Client;
  let rows: ShopRows;

  beforeAll(async () => {
    bank = await startBank();
    const env = { ...process.env, PORT: '0', DATABASE_URL: '', REDIS_URL: '', BANK_URL: bank.url };
    launcher = spawn(process.execPath, [LAUNCHER], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    ended = once(launcher, 'exit');
    let output = '';
    launcher.stdout!.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await until(() => /Ready: \S+/.test(output), 60_000);
    url = /Ready: (\S+)/.exec(output)![1]!;
    database = new pg.Client(/postgres:\S+/.exec(output)![0].replace('***', 'postgres'));
    await database.connect();
    rows = new ShopRows(database, bank);
  });

  afterAll(async () => {
    await database?.end();
    launcher.kill('SIGTERM');
    const patience = setTimeout(() => launcher.kill('SIGKILL'), 15_000);
    const [code] = await ended;
    clearTimeout(patience);
    await bank.stop();
    expect(code).toBe(0);
  });

  /** The first figure of what a half says has become of the data: "397 lost updates: balance 9997. It should be: …". */
  const figureOf = (text: string) => Number(/: \D*(\d+)/.exec(text)![1]);

  /** Waits for the end of a demonstration. One that fails says why. */
  async function isDone(page: Page) {
    const end = page.locator('#state.wrong').or(page.getByText(': done. The processes have ended.'));
    await end.waitFor({ timeout: 100_000 });
    expect(await end.textContent()).toMatch(/: done\. The processes have ended\.$/);
  }

  const verdictsOf = (page: Page, name: string) => page.locator(`#${name} .verdict`).allTextContents();

  /** The page shows the accident, and none with the lock; and the data says the same. */
  async function expectTheAccident(page: Page, name: string) {
    const [without, withLock] = await verdictsOf(page, name);
    expect(without).toMatch(/^[1-9]\d* .+: .+\. It should be: /);
    expect(withLock).toMatch(/^No accident: /);
    expect({ without: figureOf(without!), with: figureOf(withLock!) }).toEqual(await rows.of[name]!());
    expect(await page.locator('#scenarios button:disabled').count()).toBe(0);
  }

  it.each(SCENARIOS.filter(({ name }) => name !== 'balance'))(
    '$name has accidents without its lock, and none with it',
    async ({ name }) => {
      const page = await open(url);
      await rows.remember();
      await page.locator(`#${name} button`).click();
      await isDone(page);
      await expectTheAccident(page, name);
    },
  );

  it('balance has accidents, too; who opens the page meanwhile sees them, and can not start another one', async () => {
    const page = await open(url);
    await rows.remember();
    await page.locator('#balance button').click();
    await page.getByText('the crowd comes to 3 processes').waitFor({ timeout: 30_000 });
    const late = await open(url);
    await late.locator('#balance .figure', { hasText: 'answered' }).first().waitFor();
    expect(await late.locator('button:enabled').count()).toBe(0);
    await Promise.all([isDone(page), isDone(late)]);
    await expectTheAccident(page, 'balance');
    expect(await verdictsOf(late, 'balance')).toEqual(await verdictsOf(page, 'balance'));
  });

  it('the live stage shows where the lock goes when its holder dies, stalls, or loses Redis', async () => {
    const page = await open(url);
    const act = (action: string) => page.locator(`[data-action=${action}]:enabled`).click({ timeout: 30_000 });
    const seen = (text: string) => page.locator('.seen li', { hasText: text }).waitFor({ timeout: 30_000 });

    await act('start');
    await act('kill');
    await seen('was killed while it held the lock');
    await seen('s after');
    const killed = await page.locator('.lanes .killed td:first-child').textContent();
    expect(lives(pidIn(killed!))).toBe(false);
    await act('stall');
    await seen('stands still');
    await act('add');
    await seen('The database refused: another one has written with a larger fence.');
    await seen('D has joined.');
    await act('redis');
    await seen('Redis is away');
    expect((await fetch(new URL('health', url))).status).toBe(503);
    await seen('Redis is back');
    expect((await fetch(new URL('health', url))).status).toBe(200);

    const lanes = await page.locator('.lanes tbody td:first-child').allTextContents();
    const pids = lanes.map(pidIn);
    expect(pids.map(lives).sort()).toEqual([false, true, true, true]);
    expect(await page.locator('.lost').textContent()).toBe('0');
    await act('stop');
    await page.getByText('The lock, live: done.').waitFor({ timeout: 30_000 });
    expect(pids.filter(lives)).toEqual([]);
    expect(await page.locator('[data-action=start]:enabled').count()).toBe(1);
    expect(Number(await page.locator('.balance').textContent())).toBe(await rows.latestBalance());
    expect(await page.locator('.lost').textContent()).toBe('0');
    for (const plot of ['withdrawals a second', 'time to an answer'])
      await expectAPlot(page.getByRole('img', { name: new RegExp(`^${plot}.*: 0 to [1-9]`) }));
  });

  it('calls nothing right that was not done', async () => {
    const nothing = { accidents: 0, expected: 'balance 10000', actual: 'balance 10000', statuses: { 503: 400 } };
    const news = [
      Demonstrations.ready,
      { news: 'starts', scenario: 'balance' },
      { news: 'outcome', scenario: 'balance', lock: true, ...nothing },
      { news: 'failed', scenario: 'balance', reason: 'for a reason' },
    ];
    const body = news.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');
    const page = await open('about:blank');
    await page.route('**/demo/events', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    await page.goto(url);
    await page.getByText('Nothing was done: each answer was 503.').and(page.locator('#balance .bad')).waitFor();
    expect(await verdictsOf(page, 'balance')).toEqual(['–', 'Nothing was done: each answer was 503.']);
  });

  it.each([
    { status: 404, path: 'demo/runs', body: { scenario: 'nothing' } },
    { status: 409, path: 'demo/stage', body: { action: 'kill' } },
  ])('the shop answers $status to what it can not show: $body', async ({ status, path, body }) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(status);
  });
});

/** "A · 4711 · killed" */
const pidIn = (text: string) => Number(/· (\d+)/.exec(text)![1]);

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function expectAPlot(plot: Locator): Promise<void> {
  const points = await plot.locator('polyline').getAttribute('points');
  expect(points!.split(' ').length).toBeGreaterThan(20);
}
