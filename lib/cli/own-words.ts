/**
 * Says what errors say of an option of the module as it is on the command line, where a duration is no number.
 *
 * @param isRedisGiven whether the command line names the server
 */
export function inOwnWords(line: string, isRedisGiven: boolean): string {
  return line
    .replace('a number of milliseconds or a string such as', 'such as')
    .replaceAll('"connection"', isRedisGiven ? '--redis' : 'REDIS_URL')
    .replaceAll('"connection.tls.ca"', 'NODE_EXTRA_CA_CERTS')
    .replaceAll('"connection.sentinelPassword"', '"?sentinelPassword=" in the URL')
    .replaceAll('"connection.name"', 'the name of the master in the URL')
    .replaceAll('"commandTimeout"', '--timeout')
    .replaceAll('"wait"', '--wait');
}
