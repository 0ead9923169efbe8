import { createHash } from 'node:crypto';

/** What a client asks for. It makes up the serial, and sends it again when it does not know what came of the order. */
export interface OrderRequest {
  readonly serial: string;
  readonly item: string;
  readonly amount: number;
}

export interface Order extends OrderRequest {
  readonly id: number;
}

/** Tells two requests apart that have the same serial. */
export function fingerprintOf({ item, amount }: OrderRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([item, amount]))
    .digest('hex');
}
