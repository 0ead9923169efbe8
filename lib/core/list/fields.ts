/** The properties of JSON of which nothing is known: any client of the server may publish it. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the properties of an object; none for anything else. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};
