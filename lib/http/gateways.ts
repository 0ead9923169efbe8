/** The metadata key of gateways. Copied, because Nest's constant is in a package that an app need not have. */
const GATEWAY = 'websockets:is_gateway';

/** Tells whether a class has `@WebSocketGateway`. */
export function isGateway(type: object): boolean {
  return Reflect.hasMetadata(GATEWAY, type);
}
