import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { chromiumPath } from './chromium.mjs';

export type OpenPage = (address: string, options?: BrowserContextOptions) => Promise<Page>;

/** Chromium says so of each reply that is no 200, and of each connection that ends: some tests are about these. */
const ABOUT_THE_NETWORK = /Failed to load resource|net::ERR_/;

/**
 * Starts a real Chromium for all tests of the block, and stops it. After each test no page may have said anything in its
 * console, thrown an error, or broken its Content-Security-Policy.
 */
export function withBrowser(use: (open: OpenPage) => void): void {
  let browser: Browser;
  let complaints: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: chromiumPath() });
    use(async (address, options) => {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
      page.on('pageerror', (error) => complaints.push(String(error.stack)));
      await page.goto(address);
      return page;
    });
  }, 60_000);

  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    const serious = complaints.filter((text) => !ABOUT_THE_NETWORK.test(text));
    complaints = [];
    expect(serious).toEqual([]);
  });

  afterAll(() => browser.close());
}
