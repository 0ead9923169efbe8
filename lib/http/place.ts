import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { shown } from '../errors/shown.js';

/** A request of Express, or of Fastify. */
interface RoutedRequest {
  readonly method?: string;
  readonly url?: string;
  readonly route?: { readonly path?: unknown };
  readonly routeOptions?: { readonly url?: string };
}

/** What a request runs, for the log: `POST /accounts/:id/withdraw (AccountsController.withdraw)`. */
export function routeOf(context: ExecutionContext): string {
  const { method, route, routeOptions, url = '' } = context.switchToHttp().getRequest<RoutedRequest>();
  const path = route?.path ?? routeOptions?.url ?? url.replace(/\?.*/s, '');
  return `${method} ${shownPath(path)} (${context.getClass().name}.${context.getHandler().name})`;
}

/** Of a route that is a regular expression, its source. */
const shownPath = (path: unknown): string => (typeof path === 'string' ? path : path instanceof RegExp ? path.source : 'a route');

/** What a message or a query is for, as far as Nest says it. */
export function messageOf(host: ArgumentsHost): string {
  switch (host.getType<string>()) {
    case 'ws':
      return `Message ${shown(host.switchToWs().getPattern())}`;
    case 'graphql': {
      const { parentType, fieldName } = host.getArgByIndex<{ parentType?: unknown; fieldName?: unknown } | undefined>(3) ?? {};
      return `${String(parentType)}.${String(fieldName)}`;
    }
    default: {
      const message = host.switchToRpc().getContext<{ getPattern?(): unknown } | undefined>();
      return typeof message?.getPattern === 'function' ? `Message ${shown(message.getPattern())}` : 'Message';
    }
  }
}
