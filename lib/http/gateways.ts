/** As Nest has it: its constants are part of a package that an app need not have. */
const GATEWAY = 'websockets:is_gateway';

/** Whether a class has `@WebSocketGateway`. */
export function isGateway(type: object): boolean {
  return Reflect.hasMetadata(GATEWAY, type);
}
