import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { GUARDS_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { prepareGrpcCall } from './grpc-call.js';
import { grpcPatternsOf } from './message-pattern.js';

/** Prepares calls of gRPC where no guard of the whole app does: in the microservices of a hybrid app. */
class GrpcCallGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    prepareGrpcCall(context);
    return true;
  }
}

/**
 * Binds the guard to each controller with handlers of gRPC, before its own guards, while Nest still builds the app. An
 * asynchronous guard before it would let Nest 11 forget what the client has sent.
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
  Reflect.defineMetadata(GUARDS_METADATA, [new GrpcCallGuard(), ...guards], controller);
}
