// Does one piece of work of the sample's shop, and ends or stops itself on the way, at the step that it is told.
import { once } from 'node:events';
import { AccountsRepository } from '../../../../sample-app/dist/src/accounts/accounts.repository.js';
import { Database } from '../../../../sample-app/dist/src/database/database.js';
import { InterestModule } from '../../../../sample-app/dist/src/interest/interest.module.js';
import { InterestRepository } from '../../../../sample-app/dist/src/interest/interest.repository.js';
import { NightlyInterest } from '../../../../sample-app/dist/src/interest/nightly-interest.js';
import { OrdersModule } from '../../../../sample-app/dist/src/orders/orders.module.js';
import { OrdersRepository } from '../../../../sample-app/dist/src/orders/orders.repository.js';
import { OrdersService } from '../../../../sample-app/dist/src/orders/orders.service.js';
import { PaymentProvider } from '../../../../sample-app/dist/src/payments/payment-provider.js';
import { bootSample } from './sample.mjs';

const [redisUrl, databaseUrl, lease] = process.argv.slice(2);

const app = await bootSample({ redisUrl, databaseUrl, lease: Number(lease) }, OrdersModule, InterestModule);
process.send('ready');
const [{ step, signal = 'SIGKILL', order, account }] = await once(process, 'message');

/** Whether what happens now is about the order, or the account, that was named. */
let isAboutIt = order !== undefined;

/** Ends or stops here, if this is the step. After SIGKILL nothing runs. */
function at(here) {
  if (here !== step || !isAboutIt) return;
  process.kill(process.pid, signal);
  while (signal === 'SIGKILL');
}

/** Ends right before a method is called, or right after it is done. */
function around(target, method, name) {
  const original = target[method].bind(target);
  target[method] = async (...args) => {
    at(`before ${name}`);
    const result = await original(...args);
    at(`after ${name}`);
    return result;
  };
}

const database = app.get(Database);
const begin = database.transaction.bind(database);
database.transaction = () => {
  at('before the transaction');
  return { execute: (work) => begin().execute((transaction) => steps(transaction, work)) };
};

async function steps(transaction, work) {
  for (const method of ['insertInto', 'updateTable']) {
    const original = transaction[method].bind(transaction);
    transaction[method] = (table) => {
      at(`before the row in ${table}`);
      return original(table);
    };
  }
  const result = await work(transaction);
  at('before the commit');
  return result;
}

async function createOrder() {
  const orders = app.get(OrdersRepository);
  around(orders, 'recorded', 'the look at the record');
  around(app.get(PaymentProvider), 'charge', 'the charge');
  around(orders, 'create', 'the order');
  at('before the lock');
  const result = await app.get(OrdersService).create(order);
  at('after the lock');
  return result;
}

async function payInterest() {
  const interest = app.get(InterestRepository);
  const pay = interest.pay.bind(interest);
  interest.pay = async (day, id, locks) => {
    isAboutIt = id === account;
    const result = await pay(day, id, locks);
    at('after the account');
    return result;
  };
  around(app.get(AccountsRepository), 'getToChange', 'the look at the account');
  await app.get(NightlyInterest).run();
}

const work = order ? createOrder() : payInterest();
const outcome = await work.catch((error) => ({ error: namesOf(error) }));
process.send({ outcome }, () => app.close().then(() => process.disconnect()));

/** The names of an error and its causes. */
function namesOf(error) {
  return error ? [error.name, ...namesOf(error.cause)] : [];
}
