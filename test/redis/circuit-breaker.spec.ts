import { describe, expect, it } from '@jest/globals';
import { CircuitBreaker } from '../../lib/redis/connection/circuit-breaker.js';

describe('What is wrong with a connection', () => {
  const named = (name: string, message: string) => Object.assign(new Error(message), { name });
  const refused = named('Error', 'write ECONNRESET');
  const later = named('Error', 'connect ECONNREFUSED');

  it.each([
    named('MaxRetriesPerRequestError', 'Reached the max retries per request limit (which is 0).'),
    named('Error', "Stream isn't writeable and enableOfflineQueue options is false"),
  ])('is what the network said last, and not "%s" of ioredis', (ofClient) => {
    const reported: Error[] = [];
    const breaker = new CircuitBreaker({ down: (cause) => reported.push(cause), up: () => undefined });
    for (const error of [refused, ofClient]) breaker.note(error);
    expect(breaker.lastError).toBe(refused);
    for (const error of [later, ofClient]) breaker.note(error);
    expect([breaker.lastError, reported]).toEqual([later, [refused]]);
  });
});
