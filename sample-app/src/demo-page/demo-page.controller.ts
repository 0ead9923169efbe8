import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  NotFoundException,
  Param,
  Post,
  Sse,
  StreamableFile,
  type MessageEvent,
} from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { createReadStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { concat, defer, endWith, from, ignoreElements, interval, map, merge, takeUntil, type Observable } from 'rxjs';
import { DemoLink } from './demo-link.js';
import { RunDto } from './run.dto.js';
import { StageDto } from './stage.dto.js';

const ASSETS = new URL('assets/', import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
};

/** Keeps the connection open where a proxy would close a silent one, in ms. */
const SIGN_OF_LIFE_MS = 15_000;

const asset = (name: string): StreamableFile =>
  new StreamableFile(createReadStream(fileURLToPath(new URL(name, ASSETS))));

/** Serves the page that shows the demonstrations, and what happens in them. */
@ApiExcludeController()
@Controller()
export class DemoPageController {
  constructor(private readonly link: DemoLink) {}

  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('cache-control', 'no-cache')
  @Header(
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'",
  )
  page(): StreamableFile {
    return asset('index.html');
  }

  @Get('demo/assets/:name')
  @Header('cache-control', 'no-cache')
  asset(@Param('name') name: string): StreamableFile {
    const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
    if (!type) throw new NotFoundException();
    return new StreamableFile(createReadStream(fileURLToPath(new URL(name, ASSETS))), { type });
  }

  @Sse('demo/events')
  events(): Observable<MessageEvent> {
    const first = defer(() => from(this.link.first));
    const news = concat(first, this.link.news).pipe(map((data): MessageEvent => ({ data })));
    const end = this.link.news.pipe(ignoreElements(), endWith(true));
    const alive = interval(SIGN_OF_LIFE_MS).pipe(map((): MessageEvent => ({ type: 'alive', data: '' })));
    return merge(news, alive.pipe(takeUntil(end)));
  }

  @Post('demo/runs')
  @HttpCode(202)
  run(@Body() { scenario }: RunDto): void {
    this.link.send({ command: 'run', scenario });
  }

  @Post('demo/stage')
  @HttpCode(202)
  act(@Body() { action }: StageDto): void {
    this.link.send({ command: 'stage', action });
  }
}
