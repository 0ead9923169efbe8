import { expect, it } from '@jest/globals';
import { age, duration, many } from '../../lib-page/parts/format.js';

it.each([
  [-5, '0 s'],
  [999, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min 00 s'],
  [192_500, '3 min 12 s'],
  [3_600_000, '1 h 00 min'],
  [7_500_000, '2 h 05 min'],
  [90_000_000, '1 d 1 h'],
])('an age of %i ms is "%s"', (ms, text) => expect(age(ms)).toBe(text));

it.each([
  [0, '0 ms'],
  [0.42, '0.42 ms'],
  [12.34, '12.3 ms'],
  [468.4, '468 ms'],
  [1_250, '1.25 s'],
  [90_000, '90.0 s'],
  [126_000, '2.10 min'],
  [10_800_000, '3.00 h'],
])('a duration of %d ms is "%s", with three digits', (ms, text) => expect(duration(ms)).toBe(text));

it('numbers of things are words that a sentence can hold', () => {
  expect([0, 1, 1234].map((value) => many(value, 'caller'))).toEqual(['no callers', '1 caller', '1,234 callers']);
});
