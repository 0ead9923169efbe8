import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { appConfig, type AppConfig } from '../config/app.config.js';

/** How long after the grace a request may answer that it was told to stop, in ms. */
const ANSWERS_WITHIN_MS = 500;

/**
 * Closes the connections when the shutdown begins: each as soon as it has no request under way. Node would wait for
 * those that clients keep, and for those that browsers open in advance and don't use. A request that is still under way
 * after the grace is cut off. A stream without an end has to end itself when the app does.
 */
@Injectable()
export class ConnectionCloser implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /** The open connections, each with the responses that it waits for: several if its client sends ahead. */
  private readonly connections = new Map<Socket, Set<ServerResponse>>();

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    @Inject(appConfig.KEY) private readonly config: AppConfig,
  ) {}

  /** An HTTPS server would tell of its connections by `secureConnection`. */
  onApplicationBootstrap(): void {
    this.server.on('connection', (connection) => {
      this.connections.set(connection, new Set());
      connection.once('close', () => this.connections.delete(connection));
    });
    this.server.on('request', ({ socket }, response) => {
      const responses = this.connections.get(socket)!;
      responses.add(response);
      response.once('close', () => {
        responses.delete(response);
        if (!this.server.listening) this.closeIdle();
      });
    });
  }

  beforeApplicationShutdown(): void {
    this.closeIdle();
    const cutsAfterMs = this.config.shutdownGraceMs + ANSWERS_WITHIN_MS;
    setTimeout(() => this.server.closeAllConnections(), cutsAfterMs).unref();
  }

  private closeIdle(): void {
    for (const [connection, responses] of this.connections) if (responses.size === 0) connection.destroy();
  }

  private get server(): Server {
    return this.adapterHost.httpAdapter.getHttpServer();
  }
}
