// A process that measures one contender. It is told what to do by its parent, and ends with it.
import { AsyncLocalStorage } from 'node:async_hooks';

const { workload, contender, url, settings } = JSON.parse(process.argv[2]);

// A real Nest app uses an AsyncLocalStorage, for its request ids or its transactions; once one is in use, each await
// costs more.
const requests = new AsyncLocalStorage();
let actions = { open };

process.on('message', (message) => requests.run({ id: message.id }, () => answer(message)));
process.on('disconnect', () => process.exit());

async function answer({ id, action, args }) {
  try {
    reply({ id, answer: await actions[action](args) });
  } catch (error) {
    reply({ id, error: error.stack });
  }
}

/** A parent that has gone meanwhile needs no answer. */
function reply(message) {
  process.send(message, () => undefined);
}

async function open() {
  const { forms } = await import(`./contenders/${contender.file}.mjs`);
  const { default: prepare } = await import(`./workloads/${workload}.mjs`);
  actions = prepare(await forms[contender.form](url, settings));
}
