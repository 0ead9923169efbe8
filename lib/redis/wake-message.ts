import type { Granted } from '../store/lock-store.js';

type WakeMessage =
  | { readonly kind: 'granted'; readonly token: string; readonly grant: Granted; readonly leaseMs: number; readonly lock: string }
  | { readonly kind: 'wanted'; readonly token: string };

const GRANTED = /^granted (\S+) (\d+) ([01]) (\d+) ([^]+)$/;
const WANTED = /^wanted (\S+)$/;

/** Reads what the locks script publishes: `granted token fence others lease key`, or `wanted token`. Undefined for anything else. */
export function wakeMessage(text: string): WakeMessage | undefined {
  const granted = GRANTED.exec(text);
  if (granted) {
    const [, token, fence, others, lease, lock] = granted as unknown as [string, string, string, string, string, string];
    return { kind: 'granted', token, lock, leaseMs: Number(lease), grant: { granted: true, fence: Number(fence), contended: others === '1' } };
  }
  const wanted = WANTED.exec(text);
  return wanted ? { kind: 'wanted', token: wanted[1]! } : undefined;
}
