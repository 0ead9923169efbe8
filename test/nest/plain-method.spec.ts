import { compileFunction } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { methodSource } from '../../lib/decorators/source/class-source.js';
import { plainMethod } from '../../lib/decorators/source/plain-method.js';

const RUN = Symbol('run');

/** Returns the prototype of a class with this member. */
function prototypeWith(member: string): object {
  const define = compileFunction(`return class { ${member} };`, ['RUN']) as (run: symbol) => { prototype: object };
  return define(RUN).prototype;
}

describe('The methods that are read without a parser', () => {
  it.each([
    'run() {}',
    'run(id) {}',
    'run(id,) {}',
    'run(id, dto) {}',
    'async run(id, dto) {}',
    'async\trun ( id\n, dto ) \n {}',
    'async *rows(id) {}',
    'async * rows(id) {}',
    '*rows(id) {}',
    'async run(a,m){return[a,m]}',
    'async $(_, $1) {}',
    'async(id) {}',
    'async async(id) {}',
    'get(id) {}',
    'static run(other) {} async run(id) {}',
    'run(other) {} async run(id) {}',
  ])('a parser reads the same of %j', (member) => {
    const prototype = prototypeWith(member);
    const name = Object.getOwnPropertyNames(prototype).find((own) => own !== 'constructor')!;
    const { value } = methodSource(prototype, name)!;
    expect(plainMethod(prototype, name)).toEqual({
      async: value.async,
      generator: value.generator,
      parameters: value.params.map((parameter) => parameter.type === 'Identifier' && parameter.name),
      isCompact: member.includes('){'),
    });
  });

  it.each<[string | symbol, string]>([
    ['run', 'run({ id }) {}'],
    ['run', 'run([id]) {}'],
    ['run', 'run(id = 1) {}'],
    ['run', 'run(...ids) {}'],
    ['run', 'run(id /* of an account */) {}'],
    ['run', 'run(größe) {}'],
    ['run', 'run(\\u0061) {}'],
    ['run', '"run"(id) {}'],
    ['run', '["run"](id) {}'],
    [RUN, '[RUN](id) {}'],
    ['run', 'get run() { return (id) => id; }'],
    ['run', 'run = async (id) => id'],
  ])('%p needs a parser in %j', (name, member) => {
    expect(plainMethod(prototypeWith(member), name)).toBeUndefined();
  });

  it('a method that is not in the source of its class needs a parser', () => {
    const prototype = prototypeWith('async run(id) {}');
    Object.assign(prototype, {
      run(this: void, other: string) {
        return other;
      },
    });
    expect(plainMethod(prototype, 'run')).toBeUndefined();
  });

  it('a class without a constructor of its own has no source', () => {
    expect(plainMethod({ run: () => undefined }, 'run')).toBeUndefined();
  });
});
