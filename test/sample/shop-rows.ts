import type pg from 'pg';
import type { SimulatedBank } from '../../sample-app/dev/simulated-bank.js';

/** What the data says after a demonstration: without the lock, and with it. */
export interface Halves {
  readonly without: number;
  readonly with: number;
}

/** The rows of the sample's shop, read beside the shop. */
export class ShopRows {
  readonly #database: pg.Client;
  readonly #bank: SimulatedBank;
  #before: Readonly<Record<string, number>> = {};

  constructor(database: pg.Client, bank: SimulatedBank) {
    this.#database = database;
    this.#bank = bank;
  }

  /** Remembers what is there before a demonstration. */
  async remember(): Promise<void> {
    const [before] = await this.#rows(`select
      (select coalesce(max(id), 0) from accounts) as accounts,
      (select coalesce(max(id), 0) from sales) as sales,
      (select coalesce(max(id), 0) from orders) as orders,
      (select coalesce(max(id), 0) from interest_payments) as payments,
      -- A sequence that was never used has the last value 1.
      (select case when is_called then last_value else 0 end from reports_id_seq) as reports`);
    this.#before = { ...before!, refused: this.#bank.counts.refused, taken: this.#bank.counts.taken };
  }

  /** Returns the figure that each half of a scenario has changed, in the order of the scenario's own figures. */
  readonly of: Readonly<Record<string, () => Promise<Halves>>> = {
    // Both halves run at once, each on an account of its own: without the lock more is left, as updates are lost.
    balance: async () => {
      const rows = await this.#rows(
        'select balance as figure from accounts where id > $1 order by balance desc',
        'accounts',
      );
      return halves(rows);
    },
    stock: async () =>
      halves(
        await this.#rows(
          'select count(*) as figure from sales where id > $1 group by sku order by count(*) desc',
          'sales',
        ),
      ),
    orders: async () =>
      halves(
        await this.#rows(
          'select count(*) as figure from orders where id > $1 group by serial order by count(*) desc',
          'orders',
        ),
      ),
    // Five accounts for each half. The run with the lock pays those of the half before it, too, once each.
    interest: async () => {
      const rows = await this.#rows(
        `select count(*) as figure from interest_payments where account_id > $1
         group by account_id order by account_id`,
        'accounts',
      );
      const sum = (from: number) => rows.slice(from, from + 5).reduce((all, { figure }) => all + Number(figure), 0);
      return { without: sum(0) - 5, with: sum(5) };
    },
    // Each half begins with a shop without reports: those of the first half have gone, but their numbers are used up.
    report: async () => {
      const [after] = await this.#rows(
        'select (select last_value from reports_id_seq) - $1 as made, count(*) as left from reports',
        'reports',
      );
      return { without: Number(after!['made']) - Number(after!['left']), with: Number(after!['left']) };
    },
    payouts: async () => {
      const { taken, refused } = this.#bank.counts;
      const sent = taken + refused - this.#before['taken']! - this.#before['refused']!;
      return { without: sent / 2 - (refused - this.#before['refused']!), with: sent / 2 };
    },
  };

  /** Returns the balance of the latest account. */
  async latestBalance(): Promise<number> {
    const [row] = await this.#rows('select balance from accounts order by id desc limit 1');
    return Number(row!['balance']);
  }

  async #rows(query: string, since?: string): Promise<Record<string, number>[]> {
    const { rows } = await this.#database.query(query, since ? [this.#before[since]] : []);
    return rows;
  }
}

function halves(rows: readonly Record<string, unknown>[]): Halves {
  if (rows.length !== 2) throw new Error(`There are ${rows.length} of what each half makes one of.`);
  return { without: Number(rows[0]!['figure']), with: Number(rows[1]!['figure']) };
}
