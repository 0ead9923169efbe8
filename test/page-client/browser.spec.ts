import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { until } from '../support/deferred.js';
import { withBrowser, type OpenPage } from '../support/browser/with-browser.js';
import { FakeApp } from './fake-app.js';
import { busySnapshot, holding, QUIET, viewOf, waitingFor, withRows } from './snapshots.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SILENCE = { timeout: 12_000 };

describe('The lock page in Chromium, on an app that does what the test says', () => {
  let open: OpenPage;
  withBrowser((given) => (open = given));

  let app: FakeApp;
  let address: string;
  beforeEach(async () => {
    app = new FakeApp();
    address = await app.start();
  });
  afterEach(() => app.stop());

  const shows = (page: Page, text: string | RegExp, options?: { timeout: number }) =>
    page.getByText(text).first().waitFor(options);

  /** The page draws first, and then moves the focus and tells screen readers: so some things come a moment later. */
  const becomes = async <T>(look: () => Promise<T>, wanted: T) => {
    await until(async () => isDeepStrictEqual(await look(), wanted), 5_000).catch(() => undefined);
    expect(await look()).toEqual(wanted);
  };

  describe('How the data arrives', () => {
    it('is live by server-sent events', async () => {
      app.show(withRows([holding('account:42', { heldMs: 192_000 })]));
      const page = await open(address);
      await shows(page, /^Live, /);
      await shows(page, '3 min 12 s');
      app.show(withRows([holding('account:42', { heldMs: 193_000 })]));
      await shows(page, '3 min 13 s');
    });

    it.each([
      ['U+2028', '\u2028'],
      ['U+2029', '\u2029'],
    ])('is live also while a key has the line separator %s in it', async (_name, separator) => {
      app.show(withRows([holding(`note:a${separator}b`)]));
      const page = await open(address);
      await shows(page, /^Live, /);
    });

    it('polls when the stream is refused, and says so', async () => {
      app.be('no stream');
      app.show(withRows([holding('account:42')]));
      const page = await open(address);
      await shows(page, /^Polling, /);
      app.show(withRows([holding('account:43')]));
      await shows(page, 'account:43');
    });

    it('polls when a proxy holds the stream back', async () => {
      app.be('withheld');
      app.show(withRows([holding('account:42')]));
      const page = await open(address);
      await shows(page, /^Polling, /, SILENCE);
      await shows(page, 'account:42');
    });

    it('comes also to an address with a password in it, as of Basic authentication', async () => {
      app.show(withRows([holding('account:42')]));
      const page = await open(address.replace('//', '//operator:secret@'));
      await shows(page, /^Live, /);
      app.be('no stream');
      await shows(page, /^Polling, /);
    });

    it('says when the app is away and the data is stale, and is live again when it is back', async () => {
      app.show(withRows([holding('account:42')]));
      const page = await open(address);
      await shows(page, /^Live, /);
      app.be('gone');
      await shows(page, /The app does not answer\. What you see is the last/, SILENCE);
      await shows(page, /^Stale: \d+ s old/, SILENCE);
      // Ages tick without new data, and stand still when the data is stale.
      await shows(page, '3 min 18 s');
      await shows(page, 'account:42');
      app.be('well');
      await shows(page, /^Live, /, SILENCE);
      expect(await page.getByText('does not answer').filter({ visible: true }).count()).toBe(0);
    }, 40_000);

    it.each(['forbidden', 'login'] as const)('says that the session has ended (%s)', async (mood) => {
      const page = await open(address);
      await shows(page, /^Live, /);
      app.be(mood);
      await shows(page, /your session has ended/);
      await page.getByRole('button', { name: 'Reload' }).waitFor();
    });

    it('goes on without a word when the stream is over and the app lets it in again, and ends when it does not', async () => {
      const page = await open(address);
      await shows(page, /^Live, /);
      const before = app.timesAsked('events');
      app.askAgain('well');
      app.show(withRows([holding('account:43')]));
      await shows(page, 'account:43');
      expect([app.timesAsked('events'), app.timesAsked('snapshot')]).toEqual([before + 1, 0]);
      app.askAgain('forbidden');
      await shows(page, /your session has ended/);
    });

    it('stands still while it is paused', async () => {
      app.show(withRows([holding('account:42')]));
      const page = await open(address);
      await shows(page, 'account:42');
      await page.getByRole('button', { name: 'Pause' }).click();
      await shows(page, /^Paused at /);
      app.show(withRows([holding('account:43')]));
      await page.getByRole('button', { name: 'Pause', pressed: true }).click();
      await shows(page, 'account:43');
    });
  });

  describe('Who holds account:42, since when, who waits, and may I take it away?', () => {
    it('is answered on the first screen, when the filter leaves one lock', async () => {
      app.show({
        ...withRows([holding('account:42', { waiters: 2 })], [waitingFor('account:42')]),
        filter: 'account:42',
      });
      const page = await open(`${address}#/?filter=account:42`);
      await shows(page, /Held by\s*Accounts\.withdraw\s*on\s*api-1:4711\s*for\s*3 min 12 s\./);
      await shows(page, /2 callers wait for it, the longest for\s*1 min 00 s/);
      await shows(page, /is alive and answers/);
      expect(app.lastAsked('events')?.get('filter')).toBe('account:42');
      expect(await page.getByRole('button', { name: 'Take it away…' }).count()).toBe(0);
    });

    it('the filter is part of the address, which can be shared', async () => {
      const page = await open(address);
      await page.getByLabel('Filter').fill('acc & co');
      await until(() => app.lastAsked('events')?.get('filter') === 'acc & co');
      expect(page.url()).toBe(`${address}#/?filter=acc+%26+co`);
      const other = await open(page.url());
      await becomes(() => other.getByLabel('Filter').inputValue(), 'acc & co');
    });

    it('says that nobody holds a key only when the data is about that key', async () => {
      app.show({ ...withRows([]), filter: '' });
      const page = await open(address);
      await shows(page, /^Live, /);
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByLabel('Filter').fill('Account:42');
      await shows(page, 'Paused. Press “Pause” again to look for it.');
      expect(await page.getByText('No process holds').count()).toBe(0);
      await page.getByRole('button', { name: 'Pause', pressed: true }).click();
      await shows(page, 'Looking for it…');
      app.show({ ...withRows([]), filter: 'account:42' });
      await shows(page, /No process holds a lock that has “Account:42” in it\. Is that the whole key\?/);
      await page.getByRole('link', { name: 'Ask the lock server' }).click();
      expect(page.url()).toBe(`${address}#/key/Account%3A42`);
    });

    it('a key has a view of its own: queue in order, history', async () => {
      const holder = holding('account:42', { waiters: 2 });
      const queue = [waitingFor('account:42', { label: 'first' }), waitingFor('account:42', { label: 'second' })];
      app.show({ ...withRows([holder]), key: viewOf('account:42', [holder], queue) });
      const page = await open(address);
      await page.getByRole('link', { name: 'account:42' }).click();
      expect(page.url()).toBe(`${address}#/key/account%3A42`);
      await until(() => app.lastAsked('events')?.get('key') === 'account:42');
      expect(app.addresses.join()).not.toContain('?');
      const rows = page.getByRole('table', { name: 'Queue' }).getByRole('row');
      expect((await rows.allInnerTexts()).slice(1).map((text) => /first|second/.exec(text)?.[0])).toEqual([
        'first',
        'second',
      ]);
      await page.getByRole('table', { name: 'History' }).getByText('expired').waitFor();
    });

    it('a key with markup in it is text', async () => {
      const key = '<img src=x onerror=alert(1)>';
      const holder = holding(key);
      app.show({ ...withRows([holder]), key: viewOf(key, [holder]) });
      const page = await open(address);
      await page.getByRole('link', { name: key }).click();
      await page.getByRole('heading', { name: key }).waitFor();
      expect(await page.locator('img').count()).toBe(0);
    });
  });

  describe('Taking a lock away', () => {
    const holder = holding('account:42', { waiters: 1 });

    beforeEach(() => app.show({ ...withRows([holder]), actions: true, key: viewOf('account:42', [holder]) }));

    it('is done by keyboard alone, after key and reason are typed', async () => {
      const page = await open(`${address}#/key/account%3A42`);
      await page.getByRole('button', { name: 'Take it away…' }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.type('account:4');
      await page.keyboard.press('Enter');
      await shows(page, /This is not the key/);
      await page.keyboard.type('2');
      await page.keyboard.press('Enter');
      await shows(page, /Give a reason/);
      await page.keyboard.press('Tab');
      await page.keyboard.type(' its worker hangs ');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await shows(page, 'account:42 was taken away.');
      expect(app.unlocks).toHaveLength(1);
      const [{ headers, body }] = app.unlocks as [(typeof app.unlocks)[0]];
      expect(body).toEqual({
        ...{ key: 'account:42', typedKey: 'account:42', fence: 7, tokenHash: null },
        reason: 'its worker hangs',
      });
      expect(headers).toMatchObject({ 'x-lock-page': 'unlock', 'content-type': 'application/json' });
      await becomes(() => page.evaluate<string>('document.activeElement.textContent'), 'Take it away…');
    });

    it('Escape leaves everything as it is', async () => {
      const page = await open(`${address}#/key/account%3A42`);
      await page.getByRole('button', { name: 'Take it away…' }).click();
      await page.getByRole('dialog').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(app.unlocks).toEqual([]);
    });

    it('is not to be had any more when the key has another holder meanwhile', async () => {
      const page = await open(`${address}#/key/account%3A42`);
      await page.getByRole('button', { name: 'Take it away…' }).click();
      const next = holding('account:42', { fence: 8 });
      app.show({ ...withRows([next]), actions: true, key: viewOf('account:42', [next]) });
      await shows(page, /This holder has released it meanwhile/);
      expect(await page.getByRole('button', { name: 'Take it away', exact: true }).isDisabled()).toBe(true);
    });
  });

  describe('Rows that come and go', () => {
    const rows = (...numbers: number[]) => withRows(numbers.map((fence) => holding(`account:${fence}`, { fence })));
    const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent');

    it('a row keeps the focus when others go; when it goes itself, the next one gets it', async () => {
      app.show(rows(1, 2, 3, 4));
      const page = await open(address);
      await page.getByRole('link', { name: 'account:3' }).focus();
      app.show(rows(0, 3, 4));
      await shows(page, 'account:0');
      await becomes(() => focused(page), 'account:3');
      app.show(rows(0, 4));
      await page.getByText('account:3').waitFor({ state: 'detached' });
      await becomes(() => focused(page), 'account:4');
      app.show(rows());
      await shows(page, 'No lock is held now.');
      await becomes(() => page.evaluate('document.activeElement.tagName'), 'MAIN');
    });

    it('a thousand rows keep their elements from snapshot to snapshot', async () => {
      const thousand = (heldMs: number) =>
        withRows(Array.from({ length: 1_000 }, (_, fence) => holding(`account:${fence}`, { fence, heldMs })));
      app.show(thousand(5_000));
      const page = await open(address);
      await shows(page, 'account:999');
      await page.evaluate(`document.querySelectorAll('tr').forEach((row) => row.setAttribute('data-seen', ''))`);
      app.show(thousand(70_000));
      await shows(page, '1 min 10 s');
      expect(await page.locator('tbody tr[data-seen]').count()).toBe(1_000);
    });

    it('a click on a title sorts, and says so to screen readers', async () => {
      app.show(withRows([1, 30, 4].map((waiters) => holding(`account:${waiters}`, { fence: waiters, waiters }))));
      const page = await open(address);
      await page.getByRole('button', { name: 'Waiting' }).click();
      const keys = () => page.getByRole('table', { name: 'Held' }).getByRole('link').allInnerTexts();
      await becomes(keys, ['account:30', 'account:4', 'account:1']);
      const order = () => page.getByRole('columnheader', { name: 'Waiting' }).getAttribute('aria-sort');
      await becomes(order, 'descending');
    });
  });

  it('tells of an outage of the lock server, on every view', async () => {
    const page = await open(`${address}#/times`);
    await shows(page, /^Live, /);
    app.show({
      ...QUIET,
      server: { ...QUIET.server, isUp: false, up: 0, errors: ['ECONNREFUSED'], downForMs: 12_000 },
    });
    await shows(page, /The lock server is down\s*for 12 s/);
    await becomes(() => page.getByRole('status').innerText(), 'The lock server is down.');
    await page.getByRole('link', { name: 'What it says' }).click();
    await shows(page, 'ECONNREFUSED');
  });

  describe.each(['light', 'dark'] as const)('In %s', (colorScheme) => {
    it.each(['', 'key/account%3A42', 'waits', 'times', 'lost', 'processes'])(
      'the view #/%s has no fault that axe finds, and fits a phone of 360 px',
      async (view) => {
        const busy = busySnapshot();
        app.show({ ...busy, key: viewOf('account:42', busy.held.items.slice(0, 1), busy.waiting.items) });
        const page = await open(`${address}#/${view}`, { colorScheme });
        await shows(page, /^Live, /);
        await page.evaluate(AXE);
        const faults = await page.evaluate('axe.run().then(({ violations }) => violations.map(({ help }) => help))');
        expect(faults).toEqual([]);
        await page.setViewportSize({ width: 360, height: 780 });
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
      },
    );
  });
});
