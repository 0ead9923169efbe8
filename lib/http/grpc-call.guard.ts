import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { nextTick } from '../clock/next-tick.js';
import { grpcPatternsOf } from './message-pattern.js';
import { isRequestStream, readLate } from './request-stream.js';

/** Where the call stands among the arguments of a message handler: behind the message and the metadata. */
const CALL = 2;

/** A call of gRPC, of `@grpc/grpc-js`. */
interface GrpcCall extends EventEmitter {
  readonly cancelled: boolean;
}

/**
 * Lets a handler of gRPC wait for its lock as long as it takes.
 *
 * It tells also late listeners that the client has cancelled the call. Nest begins to listen for that when it
 * subscribes to what the handler has returned: for a client that left before, Nest 11 would never unsubscribe.
 *
 * And what the client streams is read when the handler subscribes to it. Nest by itself keeps it only until the method
 * has returned, which may be before it has its lock; and Nest 11 forgets all when the client has ended its stream.
 */
class GrpcCallGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const args = context.getType() === 'rpc' ? context.getArgs<unknown[]>() : [];
    const [stream, call] = [args[0], args[CALL]];
    if (isGrpcCall(call)) tellLateListeners(call);
    if (isRequestStream(stream) && call instanceof Readable) args[0] = readLate(stream, call);
    return true;
  }
}

/**
 * Binds the guard to each controller with handlers of gRPC while Nest still builds the app: a microservice of a hybrid
 * app has no global guards.
 */
export function bindGrpcGuard(modules: ModulesContainer): void {
  for (const { controllers } of modules.values())
    for (const { metatype } of controllers.values())
      if (typeof metatype === 'function' && handlesGrpc(metatype.prototype as object)) bindTo(metatype);
}

function handlesGrpc(prototype: object): boolean {
  return new MetadataScanner()
    .getAllMethodNames(prototype)
    .some((name) => grpcPatternsOf((prototype as Record<string, object>)[name]!).length > 0);
}

function bindTo(controller: object): void {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, controller) ?? []) as unknown[];
  if (guards.some((guard) => guard instanceof GrpcCallGuard)) return;
  Reflect.defineMetadata(GUARDS_METADATA, [...guards, new GrpcCallGuard()], controller);
}

function isGrpcCall(value: unknown): value is GrpcCall {
  return value instanceof EventEmitter && typeof (value as Partial<GrpcCall>).cancelled === 'boolean';
}

/** Each of them is called once, whenever it comes. */
function tellLateListeners(call: GrpcCall): void {
  for (const method of ['on', 'addListener'] as const) {
    const add = call[method].bind(call);
    call[method] = (name, listener) => {
      if (name === 'cancelled' && call.cancelled) nextTick(listener);
      return add(name, listener);
    };
  }
}
