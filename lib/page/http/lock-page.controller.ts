import {
  ConflictException,
  Controller,
  ForbiddenException,
  Get,
  HttpException,
  HttpStatus,
  Inject,
  NotFoundException,
  Param,
  Post,
  Req,
  Res,
  ServiceUnavailableException,
  type Type,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { ServerResponse } from 'node:http';
import { LockPage } from '../lock-page.js';
import type { ResolvedLockPageOptions } from '../lock-page.options.js';
import type { UnlockReply } from '../page-snapshot.js';
import { TooManyViewsError } from '../view/live-snapshots.js';
import { EventStream } from './event-stream.js';
import { PageAssets } from './page-assets.js';
import { PAGE_HEADERS } from './page-headers.js';
import {
  baseFor,
  refuseForgery,
  refuseOtherSites,
  viewIn,
  type HttpRequest,
  type HttpResponse,
} from './page-request.js';
import { unlockRequestIn, userOf } from './unlock-request.js';

/** What to send, besides the headers of all responses. */
interface Reply {
  readonly status?: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Serves the page. It sends its responses itself, so that interceptors of the app, which may wrap what handlers return,
 * leave them alone.
 */
export class LockPageController {
  readonly #page: LockPage;
  readonly #assets: PageAssets;
  readonly #http: HttpAdapterHost;

  constructor(
    @Inject(LockPage) page: LockPage,
    @Inject(PageAssets) assets: PageAssets,
    @Inject(HttpAdapterHost) http: HttpAdapterHost,
  ) {
    this.#page = page;
    this.#assets = assets;
    this.#http = http;
  }

  @Get()
  index(@Req() request: HttpRequest, @Res() response: HttpResponse): void {
    this.#send(response, { type: 'text/html; charset=utf-8', body: this.#assets.index(baseFor(request)) });
  }

  @Get('assets/:name')
  asset(@Req() request: HttpRequest, @Res() response: HttpResponse, @Param('name') name: string): void {
    const asset = this.#assets.get(name);
    if (!asset) throw new NotFoundException('The lock page has no file of this name.');
    const { type, body, etag } = asset;
    // The browser keeps it, and asks the guards each time.
    const headers = { ETag: etag, 'Cache-Control': 'private, no-cache' };
    const isKnown = request.headers['if-none-match'] === etag;
    this.#send(response, isKnown ? { status: 304, type, body: '', headers } : { type, body, headers });
  }

  @Get('snapshot')
  async snapshot(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    refuseOtherSites(request);
    const snapshot = await this.#page.live.poll(viewIn(request)).catch(tooManyRequests);
    if (snapshot === undefined) throw new ServiceUnavailableException('There is no data of the locks at the moment.');
    this.#send(response, { type: JSON_TYPE, body: snapshot });
  }

  @Get('events')
  events(@Req() request: HttpRequest, @Res() response: HttpResponse): void {
    refuseOtherSites(request);
    const stream = new EventStream(rawOf(response), this.#page.times.streamMs);
    const stop = this.#follow(request, {
      next: (snapshot) => stream.send('snapshot', snapshot),
      end: () => stream.end(),
    });
    response.hijack?.();
    stream.open(stop);
    if (request.method === 'HEAD') stream.end();
  }

  @Post('unlock')
  async unlock(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
    refuseForgery(request);
    if (!this.#page.actions)
      throw new ForbiddenException(
        'The lock page only shows. LockPageModule.forRoot({ actions: true }) lets it unlock.',
      );
    const outcome = await this.#page.unlock(unlockRequestIn(request.body), userOf(request.user));
    if (outcome === 'other holder') throw new ConflictException('The key has another holder by now.');
    const reply: UnlockReply = { unlocked: outcome === 'unlocked' };
    this.#send(response, { type: JSON_TYPE, body: JSON.stringify(reply) });
  }

  #follow(request: HttpRequest, viewer: Parameters<LockPage['live']['follow']>[1]): () => void {
    try {
      return this.#page.live.follow(viewIn(request), viewer);
    } catch (error) {
      return tooManyRequests(error);
    }
  }

  #send(response: HttpResponse, { status = 200, type, body, headers }: Reply): void {
    const { httpAdapter } = this.#http;
    for (const [name, value] of Object.entries({ ...PAGE_HEADERS, 'Content-Type': type, ...headers }))
      httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, body, status);
  }
}

/** Makes the controller of one page: its path and its guards are metadata of the class. */
export function pageController({ path, guards, actionGuards }: ResolvedLockPageOptions): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards)
  class MountedLockPageController extends LockPageController {
    @Post('unlock')
    @UseGuards(...actionGuards)
    override unlock(@Req() request: HttpRequest, @Res() response: HttpResponse): Promise<void> {
      return super.unlock(request, response);
    }
  }
  // Keeps it out of the description of the app's own API, as @ApiExcludeController() does.
  Reflect.defineMetadata('swagger/apiExcludeController', [true], MountedLockPageController);
  return MountedLockPageController;
}

function rawOf(response: HttpResponse): ServerResponse {
  return response.raw ?? (response as unknown as ServerResponse);
}

function tooManyRequests(error: unknown): never {
  if (!(error instanceof TooManyViewsError)) throw error;
  throw new HttpException(error.message, HttpStatus.TOO_MANY_REQUESTS);
}
