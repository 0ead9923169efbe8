import type { ColumnType, Generated } from 'kysely';

/** Postgres sends a bigint as text. */
type BigInteger = ColumnType<string, number, number>;

/** The fence of the last lock under which a row was written, or read to be changed. It travels as text. */
type Fence = ColumnType<string, string | undefined, string>;

export interface AccountsTable {
  id: Generated<number>;
  owner: string;
  balance: BigInteger;
  fence: Fence;
}

export interface StockTable {
  sku: string;
  pieces: number;
  fence: Fence;
}

interface SalesTable {
  id: Generated<number>;
  sku: string;
}

export interface OrdersTable {
  id: Generated<number>;
  serial: string;
  item: string;
  amount: BigInteger;
}

interface OrderRecordsTable {
  serial: string;
  /** Tells the requests with one serial apart. */
  fingerprint: string;
  order_id: number;
}

interface ChargesTable {
  idempotency_key: string;
  serial: string;
  amount: BigInteger;
}

interface InterestRunsTable {
  /** Such as `2026-11-23`. */
  day: string;
  /** The last account that has been paid. They are paid in the order of their ids. */
  paid_up_to: Generated<number>;
  fence: Fence;
}

interface InterestPaymentsTable {
  id: Generated<number>;
  day: string;
  account_id: number;
  amount: BigInteger;
}

export interface ReportsTable {
  id: Generated<number>;
  accounts: number;
  total: ColumnType<string, string, never>;
  made_at: ColumnType<Date, never, never>;
}

export interface Tables {
  accounts: AccountsTable;
  stock: StockTable;
  sales: SalesTable;
  orders: OrdersTable;
  order_records: OrderRecordsTable;
  charges: ChargesTable;
  interest_runs: InterestRunsTable;
  interest_payments: InterestPaymentsTable;
  reports: ReportsTable;
}
