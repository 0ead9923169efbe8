import { sql, type Kysely } from 'kysely';

export async function up(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable('stock')
    .addColumn('sku', 'text', (column) => column.primaryKey())
    .addColumn('pieces', 'integer', (column) => column.notNull())
    .addColumn('fence', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await schema
    .createTable('sales')
    .addColumn('id', 'integer', (column) => column.generatedAlwaysAsIdentity().primaryKey())
    .addColumn('sku', 'text', (column) => column.notNull().references('stock.sku'))
    .execute();

  // `serial` is not unique here on purpose: the demonstration without a lock creates an order twice.
  await schema
    .createTable('orders')
    .addColumn('id', 'integer', (column) => column.generatedAlwaysAsIdentity().primaryKey())
    .addColumn('serial', 'text', (column) => column.notNull())
    .addColumn('item', 'text', (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .execute();
  await schema.createIndex('orders_serial').on('orders').column('serial').execute();
  await schema
    .createTable('order_records')
    .addColumn('serial', 'text', (column) => column.primaryKey())
    .addColumn('fingerprint', 'text', (column) => column.notNull())
    .addColumn('order_id', 'integer', (column) => column.notNull().references('orders.id'))
    .execute();
  await schema
    .createTable('charges')
    .addColumn('idempotency_key', 'text', (column) => column.primaryKey())
    .addColumn('serial', 'text', (column) => column.notNull())
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .execute();

  await schema
    .createTable('interest_runs')
    .addColumn('day', 'text', (column) => column.primaryKey())
    .addColumn('paid_up_to', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('fence', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await schema
    .createTable('interest_payments')
    .addColumn('id', 'integer', (column) => column.generatedAlwaysAsIdentity().primaryKey())
    .addColumn('day', 'text', (column) => column.notNull())
    .addColumn('account_id', 'integer', (column) => column.notNull().references('accounts.id'))
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .execute();

  await schema
    .createTable('reports')
    .addColumn('id', 'integer', (column) => column.generatedAlwaysAsIdentity().primaryKey())
    .addColumn('accounts', 'integer', (column) => column.notNull())
    .addColumn('total', 'numeric', (column) => column.notNull())
    .addColumn('made_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`clock_timestamp()`))
    .execute();
}

export async function down({ schema }: Kysely<unknown>): Promise<void> {
  const tables = [
    'reports',
    'interest_payments',
    'interest_runs',
    'charges',
    'order_records',
    'orders',
    'sales',
    'stock',
  ];
  for (const table of tables) await schema.dropTable(table).execute();
}
