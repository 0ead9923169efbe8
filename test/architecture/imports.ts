import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import ts from 'typescript';

/** One import statement of a file; `from` is the file's folder (`.` for the root), `to` is a folder or the name of a package. */
export interface Import {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Reads all imports of the TypeScript files below a folder. */
export function importsBelow(root: string): Import[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return files.flatMap((file) => importsOf(root, file, readFileSync(join(root, file), 'utf8')));
}

export function importsOf(root: string, file: string, source: string): Import[] {
  const from = folder(file);
  return ts.preProcessFile(source).importedFiles.map(({ fileName }) => {
    if (!fileName.startsWith('.')) return { file, from, to: packageName(fileName) };
    return { file, from, to: folder(relative(root, join(root, dirname(file), fileName))) };
  });
}

function folder(file: string): string {
  return dirname(file).split(sep).join('/');
}

function packageName(specifier: string): string {
  const [scope, name] = specifier.split('/');
  return specifier.startsWith('@') ? `${scope}/${name}` : scope!;
}
