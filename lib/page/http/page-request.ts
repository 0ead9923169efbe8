import { BadRequestException, ForbiddenException } from '@nestjs/common';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { LONGEST_KEY } from '../../core/request/lock-key.js';
import type { View } from '../view/live-snapshots.js';

const LONGEST_FILTER = 200;

/** A request of Express, or of Fastify. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  /** The URL before a router changed it. */
  readonly originalUrl?: string;
  readonly body?: unknown;
  /** What the guard of the app has set. */
  readonly user?: unknown;
  readonly raw?: IncomingMessage;
  /** The name by which the server was asked; by which its proxy was, if the app trusts that. */
  readonly hostname?: string;
}

/** A response of Express, which is one of Node; or of Fastify, which has one. */
export interface HttpResponse {
  readonly raw?: ServerResponse;
  /** Tells Fastify that somebody else writes the response. */
  hijack?(): void;
}

/**
 * Reads what the browser wants to look at. The page says it in a header, which no access log has; a command line may
 * say it in the query. That is parsed here, as apps choose how queries are parsed.
 */
export function viewIn(request: HttpRequest): View {
  const view = request.headers['x-lock-page-view'];
  const wanted = typeof view === 'string' ? new URLSearchParams(view) : urlOf(request).searchParams;
  const filter = wanted.get('filter') ?? '';
  const key = wanted.get('key') ?? '';
  if (filter.length > LONGEST_FILTER)
    throw new BadRequestException(`"filter" has more than ${LONGEST_FILTER} characters.`);
  if (key.length > LONGEST_KEY) throw new BadRequestException(`"key" has more than ${LONGEST_KEY} characters.`);
  return { filter: filter.toLowerCase(), key: key === '' ? undefined : key };
}

/** Returns what relative links of the page begin with: it is there with and without a slash at its end. */
export function baseFor(request: HttpRequest): string {
  const last = urlOf(request).pathname.split('/').at(-1)!;
  return /^[\w.~-]+$/.test(last) ? `./${last}/` : './';
}

/**
 * Refuses what another site makes the browser send: that site could not read the reply by itself, but an app that
 * allows other origins would let it.
 */
export function refuseOtherSites(request: HttpRequest): void {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new ForbiddenException('This request comes from another site.');
  refuseOtherOrigins(request);
}

/**
 * Refuses what a form or a script of another site could send: no form sends such a header, or JSON, and a script has to
 * ask before, which says where it is from.
 */
export function refuseForgery(request: HttpRequest): void {
  const { headers } = request;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin')
    throw new ForbiddenException('This request comes from another site.');
  refuseOtherOrigins(request);
  if (headers['x-lock-page'] !== 'unlock')
    throw new ForbiddenException('This request lacks the header "x-lock-page: unlock".');
  if (!/^application\/json\b/i.test(headers['content-type'] ?? ''))
    throw new ForbiddenException('This request has another content type than application/json.');
}

/** Says what was compared, because it may be a proxy that changes the host. */
function refuseOtherOrigins(request: HttpRequest): void {
  if (!isFromElsewhere(request)) return;
  const { origin, host, ':authority': authority } = request.headers;
  throw new ForbiddenException(
    `This request comes from ${origin}, but was sent to ${String(host ?? authority)}. If a proxy stands between them, ` +
      'make it pass on the host and the port (nginx: "proxy_set_header Host $http_host").',
  );
}

/** Whether the origin is not that of this server, nor of its proxy. Without TLS, a browser says nothing else. */
function isFromElsewhere({ headers, hostname }: HttpRequest): boolean {
  const { origin, host } = headers;
  if (headers['sec-fetch-site'] !== undefined || origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin);
  if ([host, headers[':authority']].includes(from.host)) return false;
  // A script could send `X-Forwarded-Host`, too. So the app says whether it comes from a proxy that it trusts.
  const isForwarded = hostname !== undefined && hostname !== nameIn(host);
  return !(isForwarded && hostname === from.hostname);
}

/** A host without its port. */
const nameIn = (host: string | undefined): string | undefined => host?.replace(/:\d+$/, '');

const urlOf = ({ url, originalUrl }: HttpRequest): URL => new URL(originalUrl ?? url, 'http://localhost');
