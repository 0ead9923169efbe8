import type { OnModuleDestroy } from '@nestjs/common';
import { fieldsOf } from '../core/list/fields.js';
import type { LockHolder } from '../core/lock-info.js';
import type { LockService } from '../service/lock.service.js';
import { Activity } from './activity/activity.js';
import { Reporter } from './activity/report.js';
import type { UnlockRequest } from './page-snapshot.js';
import { PAGE_TIMES, type PageTimes } from './page-times.js';
import { amountOf } from './view/fields.js';
import { hashOfToken } from './view/hash-of-token.js';
import { hostAndPid } from './view/host-and-pid.js';
import { LiveSnapshots, type View } from './view/live-snapshots.js';
import { ProcessesWatch, REPORT, TIMES } from './view/processes-watch.js';
import { readQuestion } from './view/read-report.js';
import { ServerWatch } from './view/server-watch.js';
import { makeSnapshots } from './view/snapshot-maker.js';

/** What became of a request to unlock a key. */
export type UnlockOutcome = 'unlocked' | 'free' | 'other holder';

/** What the page knows about a `LockService` and about those of the other processes. */
export class LockPage implements OnModuleDestroy {
  readonly live: LiveSnapshots;
  /** Whether it may unlock keys. */
  readonly actions: boolean;
  readonly times: PageTimes;
  readonly #locks: LockService;
  readonly #processes: ProcessesWatch;

  constructor(locks: LockService, actions: boolean, times: Partial<PageTimes> = {}) {
    this.#locks = locks;
    this.#processes = new ProcessesWatch(locks.processes);
    this.actions = actions;
    this.times = { ...PAGE_TIMES, ...times };
    const { processes } = locks;
    const { host, pid } = hostAndPid(processes.own);
    const activity = new Activity();
    const reporter = new Reporter(activity, `${host}:${pid}`);
    locks.events.subscribe(activity.next);
    processes.on(REPORT, (about) => reporter.report(readQuestion(about)));
    processes.on(TIMES, (about) => reporter.times(0, amountOf(fieldsOf(about)['before']) - 1));
    const sources = {
      module: locks.moduleName,
      actions,
      own: processes.own,
      processes: this.#processes,
      server: new ServerWatch(() => locks.health()),
      inspect: (key: string) => locks.storedKey(key),
    };
    const make = async (views: readonly View[]): Promise<string[]> =>
      (await makeSnapshots(sources, views)).map((snapshot) => JSON.stringify(snapshot));
    this.live = new LiveSnapshots(make, this.times.everyMs);
  }

  /** Ends all streams: the server of the app waits for its connections before it closes. */
  onModuleDestroy(): void {
    this.live.close();
  }

  /**
   * Takes a key away from the holder that the user has seen, and from no later one.
   *
   * @throws LockUnavailableError when the store does not answer
   */
  async unlock(request: UnlockRequest, by: string): Promise<UnlockOutcome> {
    const { key, reason } = request;
    const info = await this.#locks.inspect(key);
    if (!info) return 'free';
    const holder = info.holders.find((one) => this.#isSeen(one, info.holders, request));
    if (!holder) return 'other holder';
    const unlocked = await this.#locks.forceUnlock(key, { token: holder.token, by, reason });
    return unlocked ? 'unlocked' : 'free';
  }

  /**
   * Whether a holder is the one that the user has seen. A process that is silent now may have told its fence before.
   * But if it shares the key with itself, nobody knows which of its holders has which fence.
   */
  #isSeen(
    { token, fence, host, pid, instance }: LockHolder,
    holders: readonly LockHolder[],
    { key, fence: seen, tokenHash }: UnlockRequest,
  ): boolean {
    if (seen === null) return hashOfToken(token) === tokenHash;
    if (fence !== undefined) return fence === seen;
    if (holders.filter((one) => one.instance === instance).length > 1) return false;
    return this.#processes.hasNamed(`${host}:${pid}:${instance}`, key, seen);
  }
}
