/** A value that a key can be made from. */
export type KeyPart = string | number | bigint | boolean;

/** The placeholders of a template, without their brackets. */
export type Placeholders<Template extends string> = Template extends `${string}<${infer Inside}>${infer Rest}`
  ? Inside | Placeholders<Rest>
  : never;

/** The placeholders that begin with a position. No type can say what `<userId>` means. */
type Positions<Template extends string> = Extract<Placeholders<Template>, `${bigint}` | `${bigint}.${string}`>;

/** The type of a field; `never` if the value has no such field. */
type Field<Value, Name extends string> = Value extends unknown
  ? Name extends keyof Value
    ? Value[Name]
    : Value extends readonly unknown[]
      ? Name extends `${bigint}`
        ? number extends Value['length'] ? Value[number] : never
        : never
      : never
  : never; // prettier-ignore

/** Ignores that a value may be missing: the call finds that out. */
type Present<Value> = unknown extends Value ? unknown : NonNullable<Value>;

/** The type at a path into a value; `unknown` where it is not known before the call. */
type AtPath<Value, Path extends string> =
  unknown extends Value ? unknown
  : Path extends `${infer Name}.${infer Rest}` ? AtPath<Present<Field<Value, Name>>, Rest>
  : Present<Field<Value, Path>>; // prettier-ignore

type CanBeKeyPart<Value> = [Value] extends [never]
  ? false
  : unknown extends Value
    ? true
    : [Value] extends [KeyPart]
      ? true
      : false;

/** The positional placeholders that the arguments can't fill, in their brackets. */
type Unfilled<Template extends string, Args extends unknown[]> = {
  [Inside in Positions<Template>]: CanBeKeyPart<AtPath<Args, Inside>> extends true ? never : `<${Inside}>`;
}[Positions<Template>];

type Templates<Key> = Key extends readonly string[] ? Key[number] : Extract<Key, string>;

/**
 * Accepts a method whose parameters fill the positions that the key names; for any other, a type whose text is the
 * compiler's error.
 */
export type Fills<Key, Args extends unknown[]> = [Unfilled<Templates<Key>, Args>] extends [never]
  ? unknown
  : { 'the method has no parameter, or no text or number in it, for': Unfilled<Templates<Key>, Args> };
