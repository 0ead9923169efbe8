import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import ts from 'typescript';

/** One import statement of a library file; `to` is a folder of `lib/` (`.` for its root) or the name of a package. */
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
  const [first, ...rest] = file.split(sep);
  return rest.length === 0 ? '.' : first!;
}

function packageName(specifier: string): string {
  const [scope, name] = specifier.split('/');
  return specifier.startsWith('@') ? `${scope}/${name}` : scope!;
}
