import { expect, it } from '@jest/globals';
import { hashOf, parseRoute, wantedAt } from '../../lib-page/feed/route.js';

it.each(['account:42', 'a/b?c#d&e=f', '100 %', 'ä 🔒', '<b>', '..', ' ', 'a+b'])(
  'the address of the key %j leads back to it',
  (key) => {
    const hash = hashOf({ view: 'key', key });
    expect(hash).toMatch(/^#\/key\/[\w.~!'()*%-]+$/);
    expect(parseRoute(hash)).toEqual({ view: 'key', key, filter: '' });
  },
);

it('the address holds the filter', () => {
  const hash = hashOf({ view: 'lost', filter: 'account:42 & co' });
  expect(parseRoute(hash)).toEqual({ view: 'lost', key: '', filter: 'account:42 & co' });
});

it('an address that nobody knows, or that is broken, leads somewhere', () => {
  expect(parseRoute('')).toEqual({ view: 'locks', key: '', filter: '' });
  expect(parseRoute('#/nowhere/at/all?x')).toEqual({ view: 'locks', key: '', filter: '' });
  expect(parseRoute('#/key/%E0%A4%A')).toMatchObject({ view: 'key', key: '%E0%A4%A' });
  expect(hashOf({ view: 'key', key: 'half \ud83d' })).toBe('#/key/half%20%EF%BF%BD');
});

it('a view without a filter asks for all rows, and keeps the filter for the others', () => {
  const route = parseRoute('#/processes?filter=api-3');
  expect(route.filter).toBe('api-3');
  expect(wantedAt(route)).toEqual({ filter: '', key: '' });
  expect(wantedAt({ ...route, view: 'locks' })).toEqual({ filter: 'api-3', key: '' });
});
