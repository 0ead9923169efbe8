import { EventEmitter } from 'node:events';
import { expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { clientGoneSignal, insideRequest } from '../../lib/http/http-request.js';

it('a request says once that its client has gone, so that work which it has started can wait for locks', () => {
  const response = Object.assign(new EventEmitter(), {
    destroyed: true,
    writableFinished: false,
    writeHead: () => undefined,
  });
  const context = {
    getType: () => 'http',
    getHandler: () => insideRequest,
    switchToHttp: () => ({ getResponse: () => response }),
  } as unknown as ExecutionContext;
  insideRequest(context, () => {
    expect(clientGoneSignal()?.aborted).toBe(true);
    expect(clientGoneSignal()).toBeUndefined();
  });
});
