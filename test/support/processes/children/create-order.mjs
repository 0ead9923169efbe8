// Creates an order of the sample and kills itself on the way, at the step that the argument names.
import { Database } from '../../../../sample-app/dist/src/database/database.js';
import { OrdersModule } from '../../../../sample-app/dist/src/orders/orders.module.js';
import { OrdersRepository } from '../../../../sample-app/dist/src/orders/orders.repository.js';
import { OrdersService } from '../../../../sample-app/dist/src/orders/orders.service.js';
import { PaymentProvider } from '../../../../sample-app/dist/src/payments/payment-provider.js';
import { bootSample } from './sample.mjs';

const [redisUrl, databaseUrl, lease, order, step] = process.argv.slice(2);

const app = await bootSample({ redisUrl, databaseUrl, lease: Number(lease) }, OrdersModule);

/** Dies here, if this is the step. Nothing runs after it. */
function at(here) {
  if (here !== step) return;
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** Dies right before a method is called, or right after it is done. */
function around(target, method, name) {
  const original = target[method].bind(target);
  target[method] = async (...args) => {
    at(`before ${name}`);
    const result = await original(...args);
    at(`after ${name}`);
    return result;
  };
}

const orders = app.get(OrdersRepository);
around(orders, 'recorded', 'the look at the record');
around(app.get(PaymentProvider), 'charge', 'the charge');
around(orders, 'create', 'the transaction');

const database = app.get(Database);
const begin = database.transaction.bind(database);
database.transaction = () => ({
  execute: (work) =>
    begin().execute(async (transaction) => {
      const insertInto = transaction.insertInto.bind(transaction);
      transaction.insertInto = (table) => {
        at(`before the row in ${table}`);
        return insertInto(table);
      };
      const result = await work(transaction);
      at('before the commit');
      return result;
    }),
});

at('before the lock');
const result = await app.get(OrdersService).create(JSON.parse(order));
at('after the lock');
process.send(result, () => app.close().then(() => process.disconnect()));
