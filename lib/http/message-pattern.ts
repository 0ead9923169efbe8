/** The metadata key of message handlers. Copied, because Nest's constant is in a package that an app need not have. */
const PATTERN = 'microservices:pattern';

/** The pattern of a handler of gRPC. */
interface GrpcPattern {
  readonly rpc: string;
  readonly streaming?: string;
}

/** Lists the patterns of gRPC that a handler has. */
export function grpcPatternsOf(handler: object): readonly GrpcPattern[] {
  const patterns: unknown = Reflect.getMetadata(PATTERN, handler);
  return Array.isArray(patterns) ? patterns.filter(isOfGrpc) : [];
}

const isOfGrpc = (pattern: unknown): pattern is GrpcPattern =>
  typeof pattern === 'object' && pattern !== null && 'rpc' in pattern;
