import { FILTER_CATCH_EXCEPTIONS } from '@nestjs/common/constants.js';
import type { LockedMethod } from '../decorators/method/locked-methods.js';
import { ownMethod } from '../decorators/source/class-text.js';
import { isGateway } from '../http/gateways.js';
import { grpcPatternsOf } from '../http/message-pattern.js';

const GATEWAY_HOOKS: readonly (string | symbol)[] = ['afterInit', 'handleConnection', 'handleDisconnect'];

/** How Nest marks the pattern of a handler with `@GrpcStreamCall`. */
const GRPC_STREAM_CALL = 'pt_stream';

/** Says what a method of a class is, if Nest calls it and does not catch what it throws later. */
export function roleWithoutCatch(type: object, { owner, name, kind }: LockedMethod): string | undefined {
  if (GATEWAY_HOOKS.includes(name) && isGateway(type)) return 'a hook of a gateway';
  // In a microservice, a filter returns an Observable, which Nest reads.
  if (name === 'catch' && kind !== 'observable' && Reflect.hasMetadata(FILTER_CATCH_EXCEPTIONS, type))
    return 'the method of an exception filter';
  const patterns = grpcPatternsOf(ownMethod(owner, name) as object);
  return patterns.some(({ streaming }) => streaming === GRPC_STREAM_CALL)
    ? 'a handler with @GrpcStreamCall'
    : undefined;
}
