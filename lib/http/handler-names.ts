import type { ServerResponse } from 'node:http';
import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { quotedStart, shown, unquoted } from '../errors/messages.js';

/** A request of Express, or of Fastify. */
interface RoutedRequest {
  readonly method?: string;
  readonly url?: string;
  readonly route?: { readonly path?: unknown };
  readonly routeOptions?: { readonly url?: string };
}

/** A request of Express, whose `url` is what follows the path of a middleware. */
interface MountedRequest {
  readonly originalUrl: string;
}

/** The metadata that Nest puts on handlers of server-sent events. */
const SSE = '__sse__';

/** Tells whether the handler of a request sends server-sent events. */
export function sendsEvents(context: ExecutionContext): boolean {
  return Reflect.hasMetadata(SSE, context.getHandler());
}

/** Names what a request runs, for the log: `POST /accounts/:id/withdraw (AccountsController.withdraw)`. */
export function routeOf(context: ExecutionContext): string {
  const { method, route, routeOptions, url = '' } = context.switchToHttp().getRequest<RoutedRequest>();
  const path = route?.path ?? routeOptions?.url ?? url.replace(/\?.*/s, '');
  return `${method} ${shownPath(path)} (${context.getClass().name}.${context.getHandler().name})`;
}

/** Names a request that has not reached its handler, for the log: `POST /accounts/7/withdraw (middleware)`. */
export function requestOf({ req }: ServerResponse): string {
  // A response that a test has made may have no request.
  const { method = '', originalUrl, url = '' } = (req ?? {}) as Partial<ServerResponse['req'] & MountedRequest>;
  return `${method} ${unquoted((originalUrl ?? url).replace(/\?.*/s, ''))} (middleware)`;
}

/** Shows a path; for a regular expression, its source. */
const shownPath = (path: unknown): string =>
  typeof path === 'string' ? path : path instanceof RegExp ? path.source : 'a route';

/** The methods that return the pattern of a message: of TCP and RabbitMQ, Redis, NATS, Kafka and MQTT. */
const PATTERN_OF = ['getPattern', 'getChannel', 'getSubject', 'getTopic'] as const;

/** What GraphQL tells a resolver of itself. */
interface ResolveInfo {
  readonly parentType: { readonly name: string };
  readonly fieldName: string;
}

function isResolveInfo(arg: unknown): arg is ResolveInfo {
  const { parentType, fieldName } = (arg ?? {}) as Partial<ResolveInfo>;
  return typeof parentType?.name === 'string' && typeof fieldName === 'string';
}

/** A pattern is the app's own: what looks like a login in it is none. */
const shownPattern = (pattern: unknown): string =>
  typeof pattern === 'string' ? quotedStart(pattern) : shown(pattern);

/** Names what a message or a query runs, as far as Nest knows it, for the log. */
export function messageOf(host: ArgumentsHost): string {
  switch (host.getType<string>()) {
    case 'ws':
      return `Message ${shownPattern(host.switchToWs().getPattern())}`;
    case 'graphql': {
      // The last one that Nest passes: behind what may come from the client.
      const info = host.getArgs<unknown[]>().findLast(isResolveInfo);
      return info ? `${info.parentType.name}.${info.fieldName}` : 'A resolver';
    }
    default: {
      const context = host.switchToRpc().getContext<Partial<Record<string, () => unknown>> | undefined>();
      const name = PATTERN_OF.find((getter) => typeof context?.[getter] === 'function');
      if (name) return `Message ${shownPattern(context![name]!())}`;
      // A call of gRPC stands behind the message and the metadata.
      const call = host.getArgByIndex<{ getPath?: () => string } | undefined>(2);
      return typeof call?.getPath === 'function' ? `Message ${shownPattern(call.getPath())}` : 'Message';
    }
  }
}
