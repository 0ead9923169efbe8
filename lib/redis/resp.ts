/** One argument of a command as it goes over the wire: a RESP bulk string. */
export function bulk(value: string | number): string {
  const text = String(value);
  return `${bulkHeader(Buffer.byteLength(text))}${text}\r\n`;
}

const headers: string[] = [];

/** What stands before the text of an argument: how many bytes it has. */
export function bulkHeader(bytes: number): string {
  return (headers[bytes] ??= `$${bytes}\r\n`);
}
