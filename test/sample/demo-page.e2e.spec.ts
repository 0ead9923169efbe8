import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { SampleStack } from './sample-stack.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

describe('The page of the sample, without its launcher', () => {
  let stack: SampleStack;
  let api: string;

  beforeAll(async () => {
    stack = await SampleStack.start();
    api = await stack.startApp({ opsPassword: 'of the operators' });
  });

  afterAll(() => stack.stop());

  it('the page allows no script but its own', async () => {
    const { headers, text } = await request(api).get('/').expect(200).expect('content-type', /html/);
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'");
    expect(text).not.toMatch(/<script(?! type="module" src="demo\/assets\/page\.js")|style=|onclick=/);
  });

  it.each([
    ['page.js', /javascript/],
    ['page.css', /css/],
  ])('the page gets its %s', async (name, type) => {
    await request(api).get(`/demo/assets/${name}`).expect(200).expect('content-type', type);
  });

  it.each(['nothing.js', 'constructor', '..%2fdemo-link.ts', 'index.html'])('there is no asset %s', async (name) => {
    await request(api).get(`/demo/assets/${name}`).expect(404);
  });

  it('the app says that a demonstration needs the launcher', async () => {
    const { body } = await request(api).post('/demo/runs').send({ scenario: 'stock' }).expect(503);
    expect(body.message).toContain('npm start');
    await request(api).post('/demo/stage').send({ action: 'start' }).expect(503);
    await request(api).post('/demo/runs').send({ scenario: '../x' }).expect(400);
    await request(api).post('/demo/stage').send({ action: 'explode' }).expect(400);
  });

  it('a page that listens does not keep the app from its end', async () => {
    const app = await stack.startApp({ shutdownGraceMs: 60_000 });
    const events = await fetch(`${app}/demo/events`);
    await stack.stopApp();
    expect(await events.text()).toBe('\n');
  });

  it('the page of the locks is for operators', async () => {
    await request(api)
      .get('/locks')
      .expect(401)
      .expect('www-authenticate', /^Basic /);
    await request(api).get('/locks/snapshot').auth('ops', 'of the operator').expect(401);
    await request(api).get('/locks').auth('ops', 'of the operators').expect(200).expect('content-type', /html/);
    await request(api).get('/locks/assets/page.js').auth('ops', 'of the operators').expect(200);
    const { body } = await request(api).get('/locks/snapshot').auth('ops', 'of the operators').expect(200);
    expect(body).toMatchObject({ actions: true, server: { isUp: true } });
  });

  it('nobody sees the locks when there is no password', async () => {
    const closed = await stack.startApp();
    for (const password of ['', 'undefined']) await request(closed).get('/locks').auth('ops', password).expect(401);
  });
});
