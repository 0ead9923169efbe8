/** One argument of a command as it goes over the wire: a RESP bulk string. */
export function bulk(value: string | number): string {
  const text = String(value);
  return `${bulkHeader(Buffer.byteLength(text))}${text}\r\n`;
}

/** The same for many. */
export function bulks(values: readonly (string | number)[]): string {
  const pieces: string[] = [];
  for (const value of values) {
    const text = String(value);
    pieces.push(bulkHeader(Buffer.byteLength(text)), text, '\r\n');
  }
  return pieces.join('');
}

const headers: string[] = [];

/** What stands before the text of an argument: how many bytes it has. */
export function bulkHeader(bytes: number): string {
  return (headers[bytes] ??= `$${bytes}\r\n`);
}
