/** Shows a wrong value in a message. Of an object only what it is: it may hold a password. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : `an object (${value.constructor?.name ?? 'without a class'})`;
    default:
      return String(value);
  }
}
