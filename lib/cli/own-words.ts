/**
 * Calls what errors call by an option of the module by its name on the command line.
 *
 * @param isRedisGiven whether the command line names the server
 */
export function inOwnWords(line: string, isRedisGiven: boolean): string {
  return line
    .replaceAll('"connection"', isRedisGiven ? '--redis' : 'REDIS_URL')
    .replaceAll('"connection.tls.ca"', 'NODE_EXTRA_CA_CERTS')
    .replaceAll('"connection.sentinelPassword"', '"?sentinelPassword=" in the URL')
    .replaceAll('"connection.name"', 'the name of the master in the URL')
    .replaceAll('"commandTimeout"', '--timeout')
    .replaceAll('"wait"', '--wait');
}
