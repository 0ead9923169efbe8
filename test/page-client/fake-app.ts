import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PageSnapshot, UnlockRequest } from '../../lib/page/page-snapshot.js';
import { QUIET } from './snapshots.js';

const ASSETS = new URL('../../dist/page/assets/', import.meta.url);
const TYPES: Record<string, string> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/**
 * How the app answers: `withheld` as behind a proxy that keeps the stream back, `gone` as when its process has ended,
 * `login` as a guard that leads to a login page.
 */
type Mood = 'well' | 'no stream' | 'withheld' | 'gone' | 'forbidden' | 'login';

/** Serves the built page, and whatever snapshots a test likes: what a real app can't be made to do at will. */
export class FakeApp {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #streams = new Set<ServerResponse>();
  readonly #asked: { readonly url: URL; readonly view: URLSearchParams }[] = [];
  readonly unlocks: { headers: IncomingMessage['headers']; body: UnlockRequest }[] = [];
  #snapshot: PageSnapshot = QUIET;
  #mood: Mood = 'well';

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/locks`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** What the page asked for last, by route. */
  lastAsked(route: string): URLSearchParams | undefined {
    return this.#asked.findLast(({ url }) => url.pathname === `/locks/${route}`)?.view;
  }

  /** The addresses that it asked for: an access log has them. */
  get addresses(): readonly string[] {
    return this.#asked.map(({ url }) => url.href);
  }

  timesAsked(route: string): number {
    return this.#asked.filter(({ url }) => url.pathname === `/locks/${route}`).length;
  }

  /** Sends it to all pages at once, and to those that ask from now on. */
  show(snapshot: PageSnapshot): void {
    this.#snapshot = snapshot;
    for (const stream of this.#streams) this.#send(stream);
  }

  /** Asks all browsers to connect again, as the app does now and then; and behaves so from now on. */
  askAgain(mood: Mood): void {
    this.#mood = mood;
    for (const stream of this.#streams) stream.end('event: again\ndata: {}\n\n');
  }

  /** Ends all streams, and behaves so from now on. */
  be(mood: Mood): void {
    this.#mood = mood;
    for (const stream of this.#streams) stream.destroy();
  }

  #send(stream: ServerResponse): void {
    // One that has ended closes a little later.
    if (!stream.writableEnded) stream.write(`event: snapshot\ndata: ${JSON.stringify(this.#snapshot)}\n\n`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://app');
    this.#asked.push({ url, view: new URLSearchParams(String(request.headers['x-lock-page-view'])) });
    if (this.#mood === 'gone') return void request.socket.destroy();
    if (url.pathname === '/locks') return this.#reply(response, 200, 'text/html', await asset('index.html'));
    const [, name] = /^\/locks\/assets\/(.+)$/.exec(url.pathname) ?? [];
    if (name) return this.#reply(response, 200, TYPES[name.split('.').pop()!]!, await asset(name));
    if (this.#mood === 'forbidden')
      return this.#reply(response, 403, 'application/json', '{"statusCode":403,"message":"Forbidden resource"}');
    if (this.#mood === 'login') return this.#reply(response, 200, 'text/html', '<h1>Log in</h1>');
    if (url.pathname === '/locks/events') return this.#stream(response);
    if (url.pathname === '/locks/snapshot')
      return this.#reply(response, 200, 'application/json', JSON.stringify(this.#snapshot));
    if (url.pathname === '/locks/unlock') return this.#unlock(request, response);
    this.#reply(response, 404, 'application/json', '{"statusCode":404}');
  }

  #stream(response: ServerResponse): void {
    if (this.#mood === 'no stream') return this.#reply(response, 404, 'application/json', '{}');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (this.#mood === 'withheld') return;
    this.#send(response);
    const again = setInterval(() => this.#send(response), 1_000);
    this.#streams.add(response);
    response.on('close', () => {
      clearInterval(again);
      this.#streams.delete(response);
    });
  }

  async #unlock(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks = await request.toArray();
    this.unlocks.push({ headers: request.headers, body: JSON.parse(chunks.join('')) as UnlockRequest });
    this.#reply(response, 200, 'application/json', '{"unlocked":true}');
  }

  #reply(response: ServerResponse, status: number, type: string, body: string): void {
    response.writeHead(status, { 'content-type': type, 'content-security-policy': POLICY }).end(body);
  }
}

async function asset(name: string): Promise<string> {
  return (await readFile(new URL(name, ASSETS), 'utf8')).replaceAll('{{base}}', './locks/');
}
