import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LockOptionsError, lockKey } from 'nest-redis-lock';
import { clashOf, readTemplate, shapeOf } from '../../lib/decorators/key/template-clash.js';

/**
 * What is typed as part of a key, and what is escaped; few characters, so that what could be taken for something else
 * is common.
 */
const TEXT = ['a', 'b', '1', '-', '/', '.', '@', ' ', '{', '}', 'é', '👩'];
const HOSTILE = [...TEXT, ':', '%', '2', 'D', 'u', '\n', '\u00A0', '\uD83D', '\uDE00'];

const text = fc.string({ unit: fc.constantFrom(...TEXT), maxLength: 2 });
const between = fc.oneof(fc.constantFrom(':', '-', '--', '/', ':-', 'a-', '- ', '}{'), text);
const templates = fc
  .tuple(
    fc.constantFrom('', 'a', 'a:', 'a-'),
    fc.array(fc.tuple(fc.nat(3), between), { maxLength: 4 }),
    fc.constantFrom('', 'b', ':b', '-b'),
  )
  .map(([begin, middle, end]) => begin + middle.map(([name, fixed]) => `<v${name}>${fixed}`).join('') + end)
  .filter(isTemplate);
const values = fc.array(fc.string({ unit: fc.constantFrom(...HOSTILE), minLength: 1, maxLength: 4 }), {
  minLength: 4,
  maxLength: 4,
});

const filled = (template: string, [v0, v1, v2, v3]: readonly string[]): string => lockKey(template, { v0, v1, v2, v3 });

function isTemplate(template: string): boolean {
  try {
    filled(template, ['1', '1', '1', '1']);
    return true;
  } catch (error) {
    if (error instanceof LockOptionsError) return false;
    throw error;
  }
}

/** The names in a template, each as often as it is there. */
const namesIn = (template: string): readonly number[] =>
  [...template.matchAll(/<v(\d)>/g)].map(([, name]) => Number(name));

/** Reads the values out of a key again, part by part; undefined, if the template makes no such key. */
function valuesIn(template: string, key: string): readonly string[] | undefined {
  const [parts, keyParts] = [template.split(':'), key.split(':')];
  if (parts.length !== keyParts.length) return undefined;
  const found = parts.map((part, at) => valuesInPart(part, keyParts[at]!));
  return found.includes(undefined) ? undefined : found.flatMap((one) => one!);
}

function valuesInPart(part: string, key: string): readonly string[] | undefined {
  const fixed = part.split(/<v\d>/);
  const separators = fixed
    .slice(1, -1)
    .join('')
    .replace(/[\p{L}\p{N}]/gu, '');
  const literal = (one: string) => one.replace(/[^]/gu, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`);
  const value = `([^{}${literal(separators)}]+)`;
  return new RegExp(`^${fixed.map(literal).join(value)}$`, 'u').exec(key)?.slice(1).map(unescaped);
}

function unescaped(value: string): string {
  return value.replace(/%u([0-9A-F]{4})|(?:%[0-9A-F]{2})+/g, (escaped, half?: string) =>
    half ? String.fromCharCode(parseInt(half, 16)) : decodeURIComponent(escaped),
  );
}

const runs = { numRuns: 3000 };

describe('No two value lists make one key', () => {
  it('two value lists never make one key of a template: they can be read out of it again', () => {
    fc.assert(
      fc.property(templates, values, (template, list) => {
        expect(valuesIn(template, filled(template, list))).toEqual(namesIn(template).map((name) => list[name]));
      }),
      runs,
    );
  });

  it('two value lists never make one key of a template: no two of all short ones do', () => {
    const chars = ['a', '-', '%', ':', '/', '2', 'D'];
    const short = [...chars, ...chars.flatMap((one) => chars.map((two) => one + two)), '%2D', '%25', '-2D'];
    for (const template of ['<v0>-<v1>', '<v0>-/<v1>', 'a:<v0>:<v1>']) {
      const keys = new Set(short.flatMap((v0) => short.map((v1) => filled(template, [v0, v1, '1', '1']))));
      expect(keys.size).toBe(short.length ** 2);
    }
  });

  it('two templates that can make one key are reported at boot, unless they have one shape', () => {
    let shared = 0;
    fc.assert(
      fc.property(templates, templates, values, (one, other, list) => {
        const key = filled(one, list);
        const others = valuesIn(other, key);
        // The same name twice has one value in both places.
        const isMade = others !== undefined && remade(other, others) === key;
        if (!isMade || shapeOf(one) === shapeOf(other)) return;
        shared++;
        expect(clashOf(readTemplate(one), readTemplate(other))).toBeDefined();
        expect(clashOf(readTemplate(other), readTemplate(one))).toBeDefined();
      }),
      { numRuns: 10_000 },
    );
    expect(shared).toBeGreaterThan(20);
  });

  it('two templates are reported at boot for a reason only: both make the key that is shown', () => {
    let told = 0;
    fc.assert(
      fc.property(templates, templates, (one, other) => {
        const clash = clashOf(readTemplate(one), readTemplate(other));
        if (!clash) return;
        told++;
        for (const template of [one, other]) expect(remade(template, valuesIn(template, clash.key)!)).toBe(clash.key);
      }),
      runs,
    );
    expect(told).toBeGreaterThan(20);
  });
});

/** The key of these values, each in its own place. */
function remade(template: string, list: readonly string[]): string {
  let at = 0;
  const numbered = template.replace(/<v\d>/g, () => `<n.${at++}>`);
  return lockKey(numbered, { n: list });
}

describe('What people type stays as it is', () => {
  const typed = fc.oneof(
    fc.uuid(),
    fc.emailAddress().filter((address) => !/[{}%]/.test(address)),
    fc
      .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10)),
    fc.constantFrom(
      randomUUID(),
      'my-first-post',
      'v1.2.3',
      'images/cat.png',
      'Anna Maria',
      '東京',
      'O’Neill',
      '+49 30 1234',
      'a_b~c!d',
      "it's",
      '<id>',
      '👩‍👩‍👧',
    ),
  );

  it('a value that people type stays as it is in a part of its own, whatever else the template has', () => {
    fc.assert(
      fc.property(typed, (value) => {
        expect(lockKey('pay-out:<id>', { id: value })).toBe(`pay-out:${value}`);
        expect(lockKey('pay.out/to@<id>:<id>-x', { id: value })).toBe(`pay.out/to@${value}:${value}-x`);
      }),
    );
  });

  it('two values in one part of a key have only what separates them escaped', () => {
    expect(lockKey('seat:<row>/<id>', { row: 'a-1', id: 'b-2' })).toBe('seat:a-1/b-2');
    expect(lockKey('seat:<row>-<id>', { row: 'a-1', id: 'b/2' })).toBe('seat:a%2D1-b/2');
    expect(lockKey('seat:<row>-<id>:<slug>', { row: 1, id: 2, slug: 'a-b' })).toBe('seat:1-2:a-b');
  });
});
