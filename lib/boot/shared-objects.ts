import { classNameOf } from '../decorators/method/method-name.js';
import { mistake } from '../errors/mistakes.js';

/** How many classes a warning names. */
const MOST_CLASSES = 3;

/** Warns of objects that belong to another open app, too. */
export function sharedObjects([first, ...more]: readonly [object, ...object[]]): string {
  const names = [...new Set([first, ...more].map(classNameOf))];
  const others = names.length > MOST_CLASSES ? ` and ${names.length - MOST_CLASSES} other classes` : '';
  const which =
    more.length === 0
      ? `The ${names[0]} given to Nest also belongs`
      : `${more.length + 1} objects given to Nest (of ${names.slice(0, MOST_CLASSES).join(', ')}${others}) also belong`;
  const what =
    `${which} to another app of this process that is still open. ` +
    `Until one of them closes, ${more.length === 0 ? 'its' : 'their'} @WithLock methods use the store of the app ` +
    'that started last, for both apps.';
  return mistake(what, ['Give each app an object of its own.', 'Close the other app first.']);
}
