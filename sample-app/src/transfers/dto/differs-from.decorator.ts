import { ValidateBy } from 'class-validator';

/** Checks that a property is not equal to another property of the same object. */
export function DiffersFrom<T extends object>(other: keyof T & string): PropertyDecorator {
  return ValidateBy({
    name: 'differsFrom',
    validator: {
      validate: (value, context) => value !== (context?.object as T)[other],
      defaultMessage: () => `$property must not be equal to ${other}`,
    },
  });
}
