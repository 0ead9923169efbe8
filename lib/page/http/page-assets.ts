import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { thisFile } from '../../errors/stack-files.js';

/** The page itself, in which `{{base}}` stands for the path to it. */
const INDEX = 'index.html';

/** All are text: the adapter of Express would send a buffer as JSON. */
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
};

/** A file that the browser asks for. */
export interface PageAsset {
  readonly type: string;
  readonly body: string;
  readonly etag: string;
}

/** The files of the page. They are read once, so that no request names a file on disk. */
export class PageAssets {
  readonly #files = new Map<string, PageAsset>();

  /**
   * @param folder that the build has written. Default: beside the bundle of this entry point
   * @throws LockOptionsError when it is not there
   */
  constructor(folder?: URL) {
    try {
      folder ??= builtFolder();
      for (const name of readdirSync(folder)) this.#read(name, new URL(name, folder));
    } catch (error) {
      throw new LockOptionsError(
        'The files of the lock page are not beside its code. Leave nest-redis-lock in node_modules, outside of your own ' +
          `bundle: ${(error as Error).message}`,
      );
    }
  }

  /** Returns a file, but not the page itself; undefined when there is none of that name. */
  get(name: string): PageAsset | undefined {
    return name === INDEX ? undefined : this.#files.get(name);
  }

  /** Returns the page. @param base what its links begin with: a relative path that ends in a slash */
  index(base: string): string {
    return this.#files.get(INDEX)!.body.replaceAll('{{base}}', base);
  }

  #read(name: string, file: URL): void {
    const type = TYPES[extname(name)];
    if (!type) return;
    const body = readFileSync(file, 'utf8');
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
    this.#files.set(name, { type, body, etag });
  }
}

function builtFolder(): URL {
  const { resolve } = process.getBuiltinModule('node:module').createRequire(thisFile());
  return pathToFileURL(`${dirname(resolve('nest-redis-lock/page'))}/assets/`);
}
