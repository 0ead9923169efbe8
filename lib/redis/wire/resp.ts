/** Encodes one argument of a command as a RESP bulk string. */
export function bulk(value: string | number): string {
  const text = String(value);
  return `${bulkHeader(Buffer.byteLength(text))}${text}\r\n`;
}

const counts: string[] = [];

/** Encodes a count, as `bulk` does. */
export function bulkCount(count: number): string {
  return (counts[count] ??= bulk(count));
}

/** Encodes many arguments. */
export function bulks(values: readonly (string | number)[]): string {
  const pieces: string[] = [];
  for (const value of values) {
    const text = String(value);
    pieces.push(bulkHeader(Buffer.byteLength(text)), text, '\r\n');
  }
  return pieces.join('');
}

const headers: string[] = [];

/** Returns what stands before the text of an argument: its length in bytes. */
export function bulkHeader(bytes: number): string {
  return (headers[bytes] ??= `$${bytes}\r\n`);
}
