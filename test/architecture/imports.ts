import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import ts from 'typescript';

/**
 * One import statement of a file; `from` is the file's folder (`.` for the root), `to` is a folder or the name of a
 * package.
 */
export interface Import {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Reads all imports of the TypeScript files below a folder. */
export function importsBelow(root: string): Import[] {
  return filesBelow(root).flatMap((file) => importsOf(root, file, readFileSync(join(root, file), 'utf8')));
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

/** Finds groups of files that import each other in a circle, types included; each group by its files. */
export function circlesBelow(root: string): string[][] {
  const files = filesBelow(root);
  return circlesIn(
    new Map(files.map((file) => [file, importedFiles(file, readFileSync(join(root, file), 'utf8'), files)])),
  );
}

export function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reachable = new Map([...imports.keys()].map((file) => [file, reachableFrom(file, imports)]));
  const inCircle = [...imports.keys()].filter((file) => reachable.get(file)!.has(file));
  const circles = inCircle.map((file) =>
    inCircle.filter((other) => reachable.get(file)!.has(other) && reachable.get(other)!.has(file)),
  );
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
}

function reachableFrom(start: string, imports: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set(imports.get(start));
  for (const file of reached) for (const next of imports.get(file) ?? []) reached.add(next);
  return reached;
}

function importedFiles(file: string, source: string, files: readonly string[]): string[] {
  const relatives = ts.preProcessFile(source).importedFiles.filter(({ fileName }) => fileName.startsWith('.'));
  return relatives.map(({ fileName }) => {
    const path = join(dirname(file), fileName).replace(/\.js$/, '.ts');
    return files.includes(path) ? path : `${path}x`;
  });
}

function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
}
