/** One argument of a command as it goes over the wire: a RESP bulk string. */
export function bulk(value: string | number): string {
  const text = String(value);
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/** The same for text that is known to be ASCII, without counting its bytes. */
export function asciiBulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}
