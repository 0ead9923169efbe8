/** What may stand in a key. */
export type KeyPart = string | number | bigint | boolean;

/** The placeholders of a template, without their brackets. */
export type Placeholders<Template extends string> = Template extends `${string}<${infer Inside}>${infer Rest}`
  ? Inside | Placeholders<Rest>
  : never;

/** The placeholders that begin with a position: what `<userId>` means, no type can say. */
type Positions<Template extends string> = Extract<Placeholders<Template>, `${bigint}` | `${bigint}.${string}`>;

/** What a field of a value holds; never, if it has no such field. */
type Field<Value, Name extends string> = Value extends unknown
  ? Name extends keyof Value
    ? Value[Name]
    : Value extends readonly unknown[]
      ? Name extends `${bigint}`
        ? number extends Value['length'] ? Value[number] : never
        : never
      : never
  : never; // prettier-ignore

/** A value that is missing is found out at the call. */
type Present<Value> = unknown extends Value ? unknown : NonNullable<Value>;

/** What a path into a value leads to; unknown, where that is not known before the call. */
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

/** The placeholders by position that the arguments can't fill, in their brackets. */
type Unfilled<Template extends string, Args extends unknown[]> = {
  [Inside in Positions<Template>]: CanBeKeyPart<AtPath<Args, Inside>> extends true ? never : `<${Inside}>`;
}[Positions<Template>];

type Templates<Key> = Key extends readonly string[] ? Key[number] : Extract<Key, string>;

/** Holds for a method whose parameters can fill what the key names by position. */
export type Fills<Key, Args extends unknown[]> = [Unfilled<Templates<Key>, Args>] extends [never]
  ? unknown
  : { 'the method has no parameter, or no text or number in it, for': Unfilled<Templates<Key>, Args> };
