// Lets a process import ioredis 5 by the name of "ioredis": for "IOREDIS=5 npm test". Both are CommonJS, so they can be
// exchanged where that is loaded. A hook of the ES module loader would make each start of a process twice as long.
import Module, { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const asked = require.resolve('ioredis');
const load = Module._extensions['.js'];
Module._extensions['.js'] = (module, path) => {
  if (path === asked) module.exports = require('ioredis-5');
  else load(module, path);
};
