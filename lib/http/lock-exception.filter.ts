import { type ArgumentsHost, Catch, type ExceptionFilter, Inject, Optional } from '@nestjs/common';
import { type ApplicationConfig, BaseExceptionFilter, HttpAdapterHost, type ModulesContainer } from '@nestjs/core';
import { EXCEPTION_FILTERS_METADATA } from '@nestjs/common/constants.js';
import { throwError } from 'rxjs';
import { LockError, type LockErrorBody } from '../errors/lock.error.js';
import { logger } from '../log/logger.js';
import { isGateway } from './gateways.js';
import { messageOf } from './handler-names.js';
import { attachToResponse, rawResponse } from './http-request.js';
import { followsRequests } from './lock-request.guard.js';

/** The app to which a filter was bound. */
const apps = new WeakMap<LockExceptionFilter, ApplicationConfig>();

/** The error that a client of a microservice or a gateway gets, in the form of Nest's own errors there. */
interface ErrorPayload {
  readonly status: 'error';
  readonly code: LockErrorBody['code'];
  readonly statusCode: number;
  readonly message: string;
}

/**
 * Turns lock errors into the format of the context: microservices and gateways get `{ status: 'error', code,
 * statusCode, message }`, GraphQL gets `extensions: { code, status }`, HTTP gets what Nest itself sends. None of them
 * gets the key; the log has it.
 *
 * The module binds it before all filters of the app, so these go first. In a hybrid app, `connectMicroservice` does not
 * pass global filters on: give it `{ inheritAppConfig: true }`, or put `@UseFilters(LockExceptionFilter)` on the
 * controller.
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  readonly #http: HttpAdapterHost | undefined;

  constructor(@Optional() @Inject(HttpAdapterHost) http?: HttpAdapterHost) {
    this.#http = http;
  }

  catch(error: LockError, host: ArgumentsHost): unknown {
    const context = host.getType<string>();
    if (rawResponse(host)) return this.#respond(error, host);
    if (!['rpc', 'ws', 'graphql'].includes(context)) throw error;
    if (!error.isReported) logger.warn(`${messageOf(host)}: ${error.detail}`);
    const payload = payloadOf(error);
    if (context === 'rpc') return throwError(() => payload);
    if (context === 'graphql') throw new GraphqlError(payload, error);
    return sendToSocket(host, payload);
  }

  #respond(error: LockError, host: ArgumentsHost): void {
    const app = apps.get(this);
    attachToResponse(error, host, app !== undefined && followsRequests(app));
    const adapter = this.#http?.httpAdapter;
    if (adapter) return new BaseExceptionFilter(adapter).catch(error, host);
    // Made with `new`, it knows neither platform: both have these methods.
    const response = host.switchToHttp().getResponse<HttpResponse>();
    const body = error.getResponse();
    const statusCode = error.getStatus();
    if (rawResponse(host)!.headersSent) rawResponse(host)!.end();
    else response.status(statusCode).send(typeof body === 'string' ? { statusCode, message: body } : body);
  }
}

/** A response of Express, or of Fastify. */
interface HttpResponse {
  status(statusCode: number): this;
  send(body: object): unknown;
}

/**
 * Binds the filter while Nest still builds the app, so that the filters of the app are added later and go first:
 * globally, and to each gateway, because global filters don't apply to gateways.
 */
export function bindExceptionFilter(app: ApplicationConfig, http: HttpAdapterHost, modules: ModulesContainer): void {
  if (app.getGlobalFilters().some((filter) => filter instanceof LockExceptionFilter)) return;
  const filter = new LockExceptionFilter(http);
  apps.set(filter, app);
  app.addGlobalFilter(filter);
  for (const module of modules.values()) {
    for (const { metatype, isNotMetatype } of module.providers.values())
      if (!isNotMetatype && metatype && isGateway(metatype)) bindTo(metatype);
  }
}

function bindTo(gateway: object): void {
  const filters = (Reflect.getMetadata(EXCEPTION_FILTERS_METADATA, gateway) ?? []) as unknown[];
  if (filters.some((filter) => filter instanceof LockExceptionFilter)) return;
  Reflect.defineMetadata(EXCEPTION_FILTERS_METADATA, [new LockExceptionFilter(), ...filters], gateway);
}

function payloadOf(error: LockError): ErrorPayload {
  const { code, statusCode, message } = error.body;
  return { status: 'error', code, statusCode, message };
}

/** An error whose `message` and `extensions` GraphQL copies into its response. */
class GraphqlError extends Error {
  readonly extensions: { readonly code: string; readonly status: number };

  constructor({ message, code, statusCode }: ErrorPayload, cause: LockError) {
    super(message, { cause });
    this.name = cause.name;
    this.extensions = { code, status: statusCode };
  }
}

interface Socket {
  readonly readyState?: unknown;
  send?(text: string): void;
  emit(event: string, payload: unknown): void;
}

/** Sends the event `exception`, as Nest does, by socket.io or on a plain websocket. */
function sendToSocket(host: ArgumentsHost, payload: ErrorPayload): void {
  const ws = host.switchToWs();
  const client = ws.getClient<Socket>();
  const data = { ...payload, cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
  if (typeof client.readyState === 'number' && client.send) client.send(JSON.stringify({ event: 'exception', data }));
  else client.emit('exception', data);
}
