import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { nextTick } from '../clock/next-tick.js';
import { sendsEvents } from './handler-names.js';
import { rawResponse } from './http-request.js';
import { isClosed, onceEnded } from './response-end.js';

type Listen = (name: string, listener: (...args: unknown[]) => void) => IncomingMessage;

/**
 * Tells also late listeners that a request of server-sent events has closed. Nest up to 11.1 begins to listen for that
 * when it subscribes to what the handler has returned: for a client that left before, it would never unsubscribe.
 *
 * A request also closes when its body has been read. Whoever listens after that wants to know when the client goes.
 */
export function tellLateListeners(context: ExecutionContext): void {
  const response = rawResponse(context);
  const request = response?.req;
  if (!request || !sendsEvents(context)) return;
  let hasClosed = request.closed;
  request.once('close', () => (hasClosed = true));
  const on = request.on.bind(request) as Listen;
  const listen: Listen = (name, listener) => {
    if (name === 'close' && hasClosed) {
      if (isClosed(response)) nextTick(listener);
      else onceEnded(response, listener);
    }
    return on(name, listener);
  };
  request.on = listen as typeof request.on;
}
