/**
 * Compiles the library into a few files, because to load 230 small ones takes an app four times as long: all that the
 * entry points share is in `nest-redis-lock.js`. Source maps lead to the TypeScript. The compiler adds the types, one
 * file for each source.
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
      compilerOptions: { ...options, noEmit: false, sourceMap: true, inlineSources: true },
    });
    return { code: outputText.replace(/\/\/# sourceMappingURL=.*\s*$/, ''), map: JSON.parse(sourceMapText) };
  },
};

/** The entry points beside the main one: folders of lib/. */
const ENTRIES = ['opentelemetry', 'prometheus', 'terminus', 'testing'];

/** Whether a file belongs to one entry point only. */
const isOfOneEntry = (id) =>
  ['index.ts', ...ENTRIES.map((entry) => `${entry}/`)].some((path) => id.startsWith(join(lib, path)));

const bundle = await rollup({
  input: Object.fromEntries(
    ['index', ...ENTRIES.map((entry) => `${entry}/index`)].map((entry) => [entry, join(lib, `${entry}.ts`)]),
  ),
  external: /^[^./]/,
  plugins: [typescript],
  treeshake: false,
  onLog(_level, log) {
    // The decorator helper of TypeScript reads "this" at the top of a file, which is undefined in modules.
    if (log.code !== 'THIS_IS_UNDEFINED') throw new Error(log.message);
  },
});
await bundle.write({
  dir: join(root, 'dist'),
  format: 'es',
  sourcemap: true,
  minifyInternalExports: false,
  hoistTransitiveImports: false,
  chunkFileNames: '[name].js',
  manualChunks: (id) => (isOfOneEntry(id) ? undefined : 'nest-redis-lock'),
});
await bundle.close();
