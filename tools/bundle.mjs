/**
 * Compiles the library into a few files, because to load 230 small ones takes an app four times as long: all that the
 * entry points share is in `nest-redis-lock.js`, which the command loads too, and in `nest.js`, for which Nest itself is
 * needed. Source maps lead to the TypeScript. The compiler adds the types, one file for each source.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from '@rollup/wasm-node';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const lib = join(root, 'lib');
const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);

const typescript = {
  name: 'typescript',
  resolveId: (id, importer) => (id.startsWith('.') ? resolve(dirname(importer), id.replace(/\.js$/, '.ts')) : null),
  async load(fileName) {
    const source = await readFile(fileName, 'utf8');
    const { options } = ts.convertCompilerOptionsFromJson(
      { ...config.compilerOptions, module: 'esnext', moduleResolution: 'bundler' },
      root,
    );
    const { outputText, sourceMapText } = ts.transpileModule(source, {
      fileName,
      compilerOptions: { ...options, noEmit: false, removeComments: true, sourceMap: true, inlineSources: true },
    });
    return { code: inLatin1(outputText.replace(/\/\/# sourceMappingURL=.*\s*$/, '')), map: JSON.parse(sourceMapText) };
  },
};

/** Escapes what is not in Latin-1: one such character, and V8 keeps all of the file in twice the memory. */
function inLatin1(code) {
  return code.replace(/[^\0-\xff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The entry points beside the main one: folders of lib/. */
const ENTRIES = ['opentelemetry', 'page', 'prometheus', 'terminus', 'testing'];

/** The command, and a process that it starts. */
const COMMAND = ['cli/index', 'cli/watcher'];

/** The files of some entries, and all that they and what they import imports. */
function filesOf(entries, importsOf) {
  const files = new Set(entries.map((entry) => join(lib, `${entry}.ts`)));
  for (const id of files) for (const imported of importsOf(id)) files.add(imported);
  return files;
}

const bundle = await rollup({
  input: Object.fromEntries(
    ['index', ...ENTRIES.map((entry) => `${entry}/index`), ...COMMAND].map((entry) => [
      entry,
      join(lib, `${entry}.ts`),
    ]),
  ),
  external: /^[^./]/,
  plugins: [typescript],
  treeshake: false,
  onLog(_level, log) {
    // The decorator helper of TypeScript reads "this" at the top of a file, which is undefined in modules.
    if (log.code !== 'THIS_IS_UNDEFINED') throw new Error(log.message);
  },
});
const { output } = await bundle.write({
  dir: join(root, 'dist'),
  format: 'es',
  sourcemap: true,
  minifyInternalExports: false,
  hoistTransitiveImports: false,
  chunkFileNames: ({ name, moduleIds }) =>
    moduleIds.some((id) => id.startsWith(join(lib, 'cli/'))) ? `cli/${name}.js` : `${name}.js`,
  manualChunks: (id, { getModuleInfo }) => {
    const atOnce = (file) => getModuleInfo(file)?.importedIds ?? [];
    const atOnceOrLater = (file) => [...atOnce(file), ...(getModuleInfo(file)?.dynamicallyImportedIds ?? [])];
    // The entry points, and what an app loads later or never, are left to Rollup.
    if (id === join(lib, 'index.ts') || !filesOf(['index'], atOnce).has(id)) return undefined;
    return filesOf(COMMAND, atOnceOrLater).has(id) ? 'nest-redis-lock' : 'nest';
  },
});
await bundle.close();

const NEST_IN_COMMAND = ['@nestjs/common/exceptions/http.exception.js'];
for (const { fileName, code, imports = [] } of output) {
  if (!fileName.startsWith('cli/') && code?.includes('import.meta'))
    throw new Error(`${fileName} has "import.meta": Jest could not compile it to CommonJS.`);
  if (!fileName.startsWith('cli/') && fileName !== 'nest-redis-lock.js') continue;
  const slow = imports.filter((name) => /^(@nestjs\/|nest\.js)/.test(name) && !NEST_IN_COMMAND.includes(name));
  if (slow.length > 0) throw new Error(`${fileName} loads ${slow.join()}: the command would start 200 ms later.`);
}
