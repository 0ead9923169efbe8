import { createHash } from 'node:crypto';

/**
 * Names a holder to a browser, which may not have its token: who has a token can release its lock. Two holders of
 * another tool that writes the same value each time have the same name.
 */
export const hashOfToken = (token: string): string =>
  createHash('sha256').update(token).digest('base64url').slice(0, 22);
