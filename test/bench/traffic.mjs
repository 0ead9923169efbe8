import { serverBytes } from './redis.mjs';

/**
 * What a section sends and receives. Never while it is timed: MONITOR costs the server time.
 * Commands inside a script are not counted: they cost no round trip. (INFO commandstats would count them.)
 *
 * @param run runs some sections, and answers how many
 */
export async function countTraffic(redis, run) {
  let sections = 0;
  const counted = async () => ({ sections } = await run());
  const bytes = (await countBytes(redis, counted)) / sections;
  const commands = (await countCommands(redis, counted)) / sections;
  return { bytes, commands };
}

async function countCommands({ client }, run) {
  const monitor = await client.monitor();
  let commands = 0;
  monitor.on('monitor', (_time, _args, source) => {
    if (source !== 'lua') commands++;
  });
  try {
    await run();
    await echoOf(client, monitor);
    return commands - 1;
  } finally {
    monitor.disconnect();
  }
}

async function countBytes({ client }, run) {
  const first = await serverBytes(client);
  const before = await serverBytes(client);
  await run();
  const after = await serverBytes(client);
  const ofTheQuestion = before - first;
  return after - before - ofTheQuestion;
}

/** MONITOR is a stream of its own: once it shows a command sent after the run, it has shown the whole run. */
async function echoOf(client, monitor) {
  const seen = new Promise((resolve) =>
    monitor.on('monitor', (_time, [command]) => command.toLowerCase() === 'echo' && resolve()),
  );
  await client.echo('end of the run');
  await seen;
}
