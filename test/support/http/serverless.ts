import type { INestApplication } from '@nestjs/common';
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers a GET without any connection, as a function in a cloud does. */
export type Invoke = (path: string) => Promise<Answer>;

type Handler = (event: object, context: object) => Promise<{ readonly statusCode: number; readonly body: string }>;

// Its types want those of AWS.
const serverlessExpress = createRequire(import.meta.url)('@codegenie/serverless-express') as (options: {
  readonly app: unknown;
}) => Handler;

/** As AWS Lambda does, behind an API Gateway. */
export function lambda(app: INestApplication): Invoke {
  const handler = serverlessExpress({ app: app.getHttpAdapter().getInstance() });
  return async (path) => {
    const [rawPath, rawQueryString = ''] = path.split('?') as [string, string?];
    const requestContext = { http: { method: 'GET', path: rawPath, sourceIp: '127.0.0.1' } };
    const { statusCode, body } = await handler(
      { version: '2.0', rawPath, rawQueryString, headers: {}, requestContext },
      {},
    );
    return { status: statusCode, body };
  };
}

/** As `@nestjs/azure-func-http` does: the response has no socket, and Node does not hear of its end. */
export function azure(app: INestApplication): Invoke {
  const handler = app.getHttpAdapter().getInstance() as RequestListener;
  return (path) =>
    new Promise((resolve) => {
      const request = Object.assign(new IncomingMessage(undefined as never), { method: 'GET', url: path });
      const response = new ServerResponse(request);
      response.end = (body: unknown) => {
        resolve({ status: response.statusCode, body: String(body) });
        return response;
      };
      handler(request, response);
    });
}
