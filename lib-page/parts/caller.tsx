import type { HeldRow } from '../../lib/page/page-snapshot.js';
import { hashOf } from '../feed/route.js';

export type Who = Pick<HeldRow, 'label' | 'method' | 'template' | 'host' | 'pid' | 'traceId'> &
  Partial<Pick<HeldRow, 'isSilent'>>;

/** Names a call: its label, and the process that it runs in. */
export function CallerName({ who }: { readonly who: Who }) {
  return (
    <>
      <bdi>{nameOf(who)}</bdi>
      <small>{processOf(who)}</small>
    </>
  );
}

export function nameOf({ label, method, host, isSilent }: Who): string {
  if (host === null) return 'another tool, or a process that does not answer';
  return label ?? method ?? (isSilent ? 'an unknown caller' : 'no label');
}

export function processOf({ host, pid }: Pick<Who, 'host' | 'pid'>): string {
  return host === null ? '' : pid === null ? host : `${host}:${pid}`;
}

/** Leads to the view of a key. Whatever a key holds is text. */
export function KeyLink({ name }: { readonly name: string }) {
  return (
    <a class="key" href={hashOf({ view: 'key', key: name })}>
      <bdi>{name}</bdi>
    </a>
  );
}

/** Shows a trace id so that it can be copied, shortened by CSS only. */
export function TraceId({ id }: { readonly id: string | null }) {
  return id === null ? <span class="muted">–</span> : <code class="trace">{id}</code>;
}
