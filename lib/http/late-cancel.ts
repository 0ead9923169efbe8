import { EventEmitter } from 'node:events';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { nextTick } from '../clock/next-tick.js';
import { grpcPatternsOf } from './message-pattern.js';

/** Where the call stands among the arguments of a message handler: behind the message and the metadata. */
const CALL = 2;

/** A call of gRPC, of `@grpc/grpc-js`. */
interface GrpcCall extends EventEmitter {
  readonly cancelled: boolean;
}

/**
 * Tells also late listeners that the client of a gRPC call has cancelled it. Nest begins to listen for that when it
 * subscribes to what the handler has returned: for a client that left before, Nest 11 would never unsubscribe.
 */
class LateCancelGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const call = context.getType() === 'rpc' ? context.getArgByIndex<unknown>(CALL) : undefined;
    if (isGrpcCall(call)) tellLateListeners(call);
    return true;
  }
}

/**
 * Binds the guard to each controller with handlers of gRPC while Nest still builds the app: a microservice of a hybrid
 * app has no global guards.
 */
export function bindLateCancelGuard(modules: ModulesContainer): void {
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
  if (guards.some((guard) => guard instanceof LateCancelGuard)) return;
  Reflect.defineMetadata(GUARDS_METADATA, [...guards, new LateCancelGuard()], controller);
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
