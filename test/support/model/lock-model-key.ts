import { KEPT_MARK, type AcquireCommand, type KeyView, type Sharing } from '../../../lib/store/lock-store.js';

interface Waiter {
  readonly command: AcquireCommand;
  aliveUntil: number;
}

/** One key: who has it, by token and the end of the lease, and who waits. */
export class ModelKey {
  readonly name: string;
  sharing: Sharing = 'exclusive';
  /** Which upgrade of its holder made it exclusive; 0: none. */
  writing = 0;
  holders = new Map<string, number>();
  /** By token: the last upgrade that is over. */
  over = new Map<string, number>();
  queue: Waiter[] = [];

  constructor(name: string) {
    this.name = name;
  }

  admits(sharing: Sharing): boolean {
    if (this.holders.size === 0) return true;
    return sharing === this.sharing && this.holders.size < permits(sharing);
  }

  placeOf(token: string): number {
    return this.queue.findIndex(({ command }) => command.token === token);
  }

  /** Answers whether it came now, and is the only one. */
  join(command: AcquireCommand, aliveUntil: number): boolean {
    const waiter = this.queue[this.placeOf(command.token)];
    if (waiter) waiter.aliveUntil = aliveUntil;
    return !waiter && this.queue.push({ command, aliveUntil }) === 1;
  }

  /** Answers whether it was in the queue. */
  leave(token: string): boolean {
    const waited = this.placeOf(token) >= 0;
    this.queue = this.queue.filter(({ command }) => command.token !== token);
    return waited;
  }

  view(time: number): KeyView | undefined {
    if (this.holders.size === 0) return undefined;
    return {
      sharing: this.sharing,
      holders: [...this.holders].map(([token, endsAt]) => ({ token, leaseLeftMs: endsAt - time })),
      waiters: this.queue.map(({ command: { token, sharing, label } }) => ({ token, sharing, label })),
    };
  }

  /** Its part is nobody's until then. */
  keep(token: string, endsAt: number): void {
    this.holders.delete(token);
    this.holders.set(token + KEPT_MARK, endsAt);
  }

  /** Whether an upgrade comes neither after its own end nor after the begin of a later one. */
  isInTime(token: string, upgrade: number): boolean {
    return this.sharing === 'exclusive' ? this.writing <= upgrade : (this.over.get(token) ?? 0) < upgrade;
  }

  /** A reader's upgrades up to this one are over. */
  end(token: string, upgrade: number): void {
    if (upgrade <= (this.over.get(token) ?? 0)) return;
    for (const other of this.over.keys()) if (!this.holders.has(other)) this.over.delete(other);
    this.over.set(token, upgrade);
  }

  renew(token: string, endsAt: number): void {
    this.holders.set(token, Math.max(endsAt, this.holders.get(token) ?? 0));
  }
}

/** How many may share a key. */
export const permits = (sharing: Sharing): number =>
  sharing === 'read' ? Infinity : sharing === 'exclusive' ? 1 : Number(sharing.slice('permits:'.length));
