/** Calls what errors call by an option of the module by its name on the command line. */
export function inOwnWords(line: string, words: readonly string[]): string {
  const isGiven = words.some((word) => /^--redis(?:=|$)/.test(word));
  return line
    .replaceAll('"connection"', isGiven ? '--redis' : 'REDIS_URL')
    .replaceAll('"connection.tls.ca"', 'NODE_EXTRA_CA_CERTS')
    .replaceAll('"commandTimeout"', '--timeout');
}
