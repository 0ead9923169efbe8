import type { Socket } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

/** Both sides know a key, so that they need no certificate. */
const KEY = Buffer.alloc(32, 'k');
const CIPHERS = { ciphers: 'PSK', maxVersion: 'TLSv1.2' } as const;

/** The options of a server that speaks TLS with `connectSecurely`. */
export const SECURE_SERVER = { ...CIPHERS, pskCallback: () => KEY, pskIdentityHint: '' };

/** Connects by TLS: over a connection that is there, or to a path. */
export function connectSecurely(over: Pick<ConnectionOptions, 'path'> & { readonly socket?: Socket }): TLSSocket {
  const pskCallback = () => ({ psk: KEY, identity: '' });
  return connect({ ...CIPHERS, ...over, pskCallback, checkServerIdentity: () => undefined });
}
