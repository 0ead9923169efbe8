// Withdraws from an account of the sample, stops itself on the way, and says what came of it when it goes on.
import { AccountsModule } from '../../../../sample-app/dist/src/accounts/accounts.module.js';
import { AccountsRepository } from '../../../../sample-app/dist/src/accounts/accounts.repository.js';
import { AccountsService } from '../../../../sample-app/dist/src/accounts/accounts.service.js';
import { FraudCheck } from '../../../../sample-app/dist/src/accounts/fraud-check.js';
import { Database } from '../../../../sample-app/dist/src/database/database.js';
import { bootSample } from './sample.mjs';

const [redisUrl, databaseUrl, lease, account, amount, pause, fence] = process.argv.slice(2);

const app = await bootSample({ redisUrl, databaseUrl, lease: Number(lease) }, AccountsModule);
const database = app.get(Database);

const stop = () => process.kill(process.pid, 'SIGSTOP');

app.get(FraudCheck).approve = async () => {
  await new Promise((sent) => process.send('has read', sent));
  if (pause === 'before the check') stop();
};

const begin = database.transaction.bind(database);
database.transaction = () => {
  if (pause === 'before the write') stop();
  return begin();
};

/** What `save` would be without the fence. */
function saveWithoutFence([{ id, balance }]) {
  return database
    .transaction()
    .execute((transaction) => transaction.updateTable('accounts').set({ balance }).where('id', '=', id).execute());
}
if (fence === 'no fence') app.get(AccountsRepository).save = saveWithoutFence;

const outcome = await app
  .get(AccountsService)
  .withdraw(Number(account), Number(amount))
  .then(
    () => 'done',
    (error) => ({ code: error.code, cause: error.cause?.name }),
  );
await app.close();
process.send({ outcome }, () => process.disconnect());
