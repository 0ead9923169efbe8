/**
 * Bundles the page of `lib-page/` into the files that `LockPageModule` serves: `dist/page/assets` has one HTML file, one
 * script, one style sheet and one icon. Preact and uPlot are in the script, so that users install neither.
 */
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from '@rollup/wasm-node';
import { minify } from '@swc/core';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'lib-page');
const target = join(root, 'dist/page/assets');
const { resolve: fileOf } = createRequire(import.meta.url);

const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
const { config: ofPage } = ts.readConfigFile(join(source, 'tsconfig.json'), ts.sys.readFile);
const { options: compilerOptions } = ts.convertCompilerOptionsFromJson(
  { ...config.compilerOptions, ...ofPage.compilerOptions, noEmit: false },
  source,
);

/** The packages in the script; their licences ask for their notices. */
const PACKAGES = { preact: 'dist/preact.mjs', uplot: 'dist/uPlot.esm.js' };

async function bundleScript() {
  const bundle = await rollup({ input: join(source, 'main.tsx'), plugins: [packages, typescript], onLog: refuse });
  const { output } = await bundle.generate({ format: 'es' });
  await bundle.close();
  const { code } = await minify(output[0].code, { module: true, compress: { passes: 2 }, mangle: true });
  return `${await notices()}${code}\n`;
}

const packages = {
  name: 'packages',
  resolveId(id) {
    if (id in PACKAGES) return join(dirname(fileOf(`${id}/package.json`)), PACKAGES[id]);
    return id.startsWith('preact/') ? fileURLToPath(import.meta.resolve(id)) : null;
  },
};

const typescript = {
  name: 'typescript',
  resolveId(id, importer) {
    if (!id.startsWith('.')) return null;
    const path = resolve(dirname(importer), id);
    return [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx'), path].find(ts.sys.fileExists) ?? null;
  },
  transform(code, fileName) {
    if (!/\.tsx?$/.test(fileName)) return null;
    return { code: ts.transpileModule(code, { fileName, compilerOptions }).outputText, map: null };
  },
};

function refuse(_level, log) {
  throw new Error(log.message);
}

async function notices() {
  const texts = await Promise.all(
    Object.keys(PACKAGES).map(async (name) => {
      const folder = dirname(fileOf(`${name}/package.json`));
      const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
      return `${name} ${version}\n\n${await readFile(join(folder, 'LICENSE'), 'utf8')}`;
    }),
  );
  return `/*!\n${texts.join('\n')}*/\n`;
}

await mkdir(target, { recursive: true });
await writeFile(join(target, 'page.js'), await bundleScript());
const styles = [fileOf('uplot/dist/uPlot.min.css'), join(source, 'page.css')];
await writeFile(join(target, 'page.css'), (await Promise.all(styles.map((file) => readFile(file, 'utf8')))).join('\n'));
for (const name of ['index.html', 'icon.svg']) await copyFile(join(source, name), join(target, name));
