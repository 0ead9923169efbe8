import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Server } from 'node:http';

const REQUESTS_END_WITHIN_MS = 1_000;

/**
 * Closes the connections that are still open a second after the shutdown has begun.
 * Browsers open connections in advance and don't use them; Node would wait for those, too.
 */
@Injectable()
export class ConnectionCloser implements BeforeApplicationShutdown {
  constructor(private readonly adapterHost: HttpAdapterHost) {}

  beforeApplicationShutdown(): void {
    const server: Server = this.adapterHost.httpAdapter.getHttpServer();
    setTimeout(() => server.closeAllConnections(), REQUESTS_END_WITHIN_MS).unref();
  }
}
