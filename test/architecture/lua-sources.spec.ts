import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

it('the embedded Lua scripts are those of the .lua files', async () => {
  await expect(promisify(execFile)('node', ['tools/lua/embed.mjs', '--check'])).resolves.toBeDefined();
});
