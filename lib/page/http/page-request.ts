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
}

/** A response of Express, which is one of Node; or of Fastify, which has one. */
export interface HttpResponse {
  readonly raw?: ServerResponse;
  /** Tells Fastify that somebody else writes the response. */
  hijack?(): void;
}

/** Reads what the browser wants to look at. The URL is parsed here, as apps choose how queries are parsed. */
export function viewIn(request: HttpRequest): View {
  const { searchParams } = urlOf(request);
  const filter = searchParams.get('filter') ?? '';
  const key = searchParams.get('key') ?? '';
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
export function refuseOtherSites({ headers }: HttpRequest): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new ForbiddenException('This request comes from another site.');
}

/**
 * Refuses what a form or a script of another site could send: no form sends such a header, or JSON, and a script has to
 * ask before, which says where it is from.
 */
export function refuseForgery({ headers }: HttpRequest): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin')
    throw new ForbiddenException('This request comes from another site.');
  if (site === undefined && headers.origin !== undefined && !isOwn(headers.origin, headers))
    throw new ForbiddenException('This request comes from another site.');
  if (headers['x-lock-page'] !== 'unlock')
    throw new ForbiddenException('This request lacks the header "x-lock-page: unlock".');
  if (!/^application\/json\b/i.test(headers['content-type'] ?? ''))
    throw new ForbiddenException('This request has another content type than application/json.');
}

/** Whether an origin is that of this server, or of the proxy before it. */
function isOwn(origin: string, headers: IncomingHttpHeaders): boolean {
  const forwarded = headers['x-forwarded-host'];
  const host = URL.canParse(origin) ? new URL(origin).host : undefined;
  return host !== undefined && [headers.host, headers[':authority'], forwarded].includes(host);
}

const urlOf = ({ url, originalUrl }: HttpRequest): URL => new URL(originalUrl ?? url, 'http://localhost');
