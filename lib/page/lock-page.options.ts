import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { wrongValue } from '../core/request/lock-options.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake } from '../errors/mistakes.js';
import { shown } from '../errors/messages.js';
import { unknownOption } from '../errors/unknown-option.js';
import { moduleNameIn } from '../service/lock.tokens.js';

/** A guard: its class, which Nest builds with its dependencies, or an object. */
export type LockPageGuard = Type<CanActivate> | CanActivate;

export interface LockPageModuleOptions {
  /** The path of the page, behind the global prefix of the app. It has no version. @default 'locks' */
  readonly path?: string | undefined;
  /**
   * Who may see the page: the guards of its controller, as with `@UseGuards()`. They guard its files, its data and its
   * actions too. The global guards of the app run before them. Without any, the app does not start, unless `NODE_ENV`
   * is
   * `development` or `test`, or `openToEverybody` is true.
   * @default none
   */
  readonly guards?: readonly LockPageGuard[] | undefined;
  /** The modules that export what the guards inject, unless they are global. @default none */
  readonly imports?: ModuleMetadata['imports'] | undefined;
  /**
   * Whether the page may force-unlock a key. `{ guards }`: these guards decide about it, after those of the page.
   * @default false
   */
  readonly actions?: boolean | { readonly guards: readonly LockPageGuard[] } | undefined;
  /**
   * Whether to start without guards: everybody who reaches the app sees all keys, hosts and traces. For an app that
   * only operators reach, or one whose global guards refuse everybody else. Not together with `actions`.
   * @default false
   */
  readonly openToEverybody?: boolean | undefined;
  /** The `name` of the `RedisLockModule` whose locks it shows. @default 'default' */
  readonly module?: string;
}

/** The options with their defaults. */
export interface ResolvedLockPageOptions {
  readonly path: string;
  readonly guards: readonly LockPageGuard[];
  readonly imports: NonNullable<ModuleMetadata['imports']>;
  readonly actions: boolean;
  readonly actionGuards: readonly LockPageGuard[];
  readonly module: string;
}

const KNOWN: readonly string[] = Object.keys({
  path: 0,
  guards: 0,
  imports: 0,
  actions: 0,
  openToEverybody: 0,
  module: 0,
} satisfies Record<keyof LockPageModuleOptions, 0>);

/** The environments in which nobody else reaches the app. An app that names none may be in production. */
const WITHOUT_GUARDS = ['development', 'test'];

/**
 * Checks the options of the page.
 *
 * @param environment the `NODE_ENV` of the process
 * @throws LockOptionsError naming the option, the value and what is allowed; and when nobody guards the page
 */
export function resolvePageOptions(
  given: LockPageModuleOptions,
  environment: string | undefined,
): ResolvedLockPageOptions {
  if (typeof given !== 'object' || given === null)
    throw new LockOptionsError(`LockPageModule.forRoot() takes an object of options, not ${shown(given)}.`);
  const unknown = Object.keys(given).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw unknownOption(unknown, KNOWN);
  const { actions = false, imports = [], openToEverybody = false } = given;
  if (!Array.isArray(imports)) throw wrongValue('imports', imports, 'an array of modules');
  const guards = guardsIn('guards', given.guards ?? []);
  const actionGuards =
    typeof actions === 'object' && actions !== null ? guardsIn('actions.guards', actions.guards) : [];
  if (typeof actions !== 'boolean' && actionGuards.length === 0)
    throw wrongValue('actions', actions, 'true, false, or { guards } with at least one guard');
  if (typeof openToEverybody !== 'boolean') throw wrongValue('openToEverybody', openToEverybody, 'true or false');
  if (guards.length === 0 && !WITHOUT_GUARDS.includes(environment ?? ''))
    refuseUnguarded({ openToEverybody, mayUnlock: actions !== false && actionGuards.length === 0 });
  return {
    path: pathIn(given.path ?? 'locks'),
    guards,
    imports,
    actions: actions !== false,
    actionGuards,
    module: moduleNameIn(given, 'module'),
  };
}

function guardsIn(option: string, guards: unknown): readonly LockPageGuard[] {
  // `undefined` in it may be a class of a circular import, and Nest would leave it out.
  if (Array.isArray(guards) && guards.every(isGuard)) return guards;
  throw wrongValue(option, guards, 'an array of guards: classes with a method canActivate(), or objects that have one');
}

function isGuard(guard: unknown): guard is LockPageGuard {
  const methods: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof (methods as CanActivate | undefined)?.canActivate === 'function';
}

/** Parts of letters, digits and some signs; none of them is `.` or `..`. */
const PATH = /^\/?(?:(?!\.\.?(?:\/|$))[\w.~-]+(?:\/|$))+$/;

function pathIn(path: unknown): string {
  if (typeof path === 'string' && PATH.test(path)) return path;
  throw wrongValue('path', path, "a path such as 'locks' or 'ops/locks', without parameters");
}

function refuseUnguarded({ openToEverybody, mayUnlock }: { openToEverybody: boolean; mayUnlock: boolean }): void {
  if (openToEverybody && !mayUnlock) return;
  const what = openToEverybody
    ? 'The lock page has "actions" and no guards, so everybody who reaches this app could take any lock away from its holder.'
    : 'The lock page has no guards, so everybody who reaches this app would see the keys of all locks, which can name customers.';
  throw new LockOptionsError(
    mistake(what, [
      'LockPageModule.forRoot({ guards: [AdminGuard] }), with a guard of your app.',
      'For your own machine, set NODE_ENV=development.',
      ...(openToEverybody
        ? ['Leave out "actions".']
        : ['If only operators reach this app, or its global guards refuse everybody else: openToEverybody: true.']),
    ]),
  );
}
