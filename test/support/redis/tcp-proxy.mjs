import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { performance } from 'node:perf_hooks';

const NEVER = () => false;
const ALWAYS = () => true;

/** What goes one way on a connection. */
class Flow {
  #to;
  #wire;
  #way;
  #drops;
  #held;
  #holds;
  #onHeld = [];
  #onDropped;
  /** What waits for its delay, in order. */
  #delayed = [];
  #delayedUntil = 0;

  constructor(to, { wire, way, drops, onDropped, holds = NEVER }) {
    this.#holds = holds;
    this.#to = to;
    this.#wire = wire;
    this.#way = way;
    this.#drops = drops;
    this.#onDropped = onDropped;
  }

  hold() {
    this.#held ??= [];
  }

  get keepsBack() {
    return (this.#held?.length ?? 0) > 0;
  }

  nextHeld() {
    return new Promise((resolve) => this.#onHeld.push(resolve));
  }

  releaseNext() {
    this.#send(this.#held.shift());
  }

  release() {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const chunk of held) this.#send(chunk);
  }

  drop(drops = ALWAYS) {
    this.#drops = drops;
  }

  pass() {
    this.#drops = NEVER;
  }

  write(chunk) {
    if (this.#drops(chunk, this.#wire)) return void this.#onDropped();
    if (this.#holds(chunk, this.#wire)) this.hold();
    if (!this.#held) return void this.#send(chunk);
    this.#held.push(chunk);
    for (const done of this.#onHeld.splice(0)) done();
  }

  #send(chunk) {
    const now = performance.now();
    // A shorter delay overtakes nothing, as on a real connection.
    this.#delayedUntil = Math.max(this.#delayedUntil, now + this.#way.delayMs);
    if (this.#delayed.length === 0 && this.#delayedUntil <= now) return this.#write(chunk);
    this.#delayed.push(chunk);
    setTimeout(() => this.#write(this.#delayed.shift()), this.#delayedUntil - now);
  }

  #write(chunk) {
    if (this.#to.writable) this.#to.write(chunk);
  }
}

export async function startProxy(firstPort) {
  let targetPort = firstPort;
  const way = { delayMs: 0 };
  const sockets = new Set();
  const wires = [];
  let isOpen = true;
  let maySubscribe = true;
  let dropsRequests = NEVER;
  let holdsRequests = NEVER;
  let dropsReplies = NEVER;
  const onDroppedReply = [];

  const keep = (socket, onClose) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      onClose();
    });
  };
  const server = createServer((client) => {
    if (!isOpen) return void client.on('error', () => undefined).destroy();
    const redis = connect(targetPort, '127.0.0.1');
    const wire = {
      isOpen: true,
      subscribes: false,
      cut: () => client.destroy(),
      loseClient() {
        wire.isLost = true;
        client.destroy();
      },
      outliveClient() {
        wire.isLost = true;
      },
      loseServer() {
        wire.isServerLost = true;
        redis.destroy();
      },
    };
    wire.requests = new Flow(redis, {
      wire,
      way,
      drops: dropsRequests,
      onDropped: () => undefined,
      holds: (chunk) => holdsRequests(chunk, wire),
    });
    wire.replies = new Flow(client, {
      wire,
      way,
      drops: dropsReplies,
      onDropped: () => onDroppedReply.splice(0).forEach((done) => done()),
    });
    wires.push(wire);
    keep(client, () => {
      wire.isOpen = false;
      if (!wire.isLost) redis.destroy();
    });
    keep(redis, () => wire.isServerLost || client.destroy());
    client.on('data', (chunk) => {
      wire.subscribes ||= /\r\nsubscribe\r\n/i.test(chunk.toString('latin1'));
      if (wire.subscribes && !maySubscribe) return wire.cut();
      wire.requests.write(chunk);
    });
    redis.on('data', (chunk) => wire.replies.write(chunk));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  const { port } = server.address();
  const cut = () => sockets.forEach((socket) => socket.destroy());
  const reset = () => sockets.forEach((socket) => socket.resetAndDestroy());
  const open = () => wires.filter((wire) => wire.isOpen);
  const subscribers = () => open().filter(({ subscribes }) => subscribes);

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    wires,
    dropRequests(drops = ALWAYS) {
      dropsRequests = drops;
      for (const { requests } of open()) requests.drop(drops);
    },
    holdRequests(from) {
      holdsRequests = from;
    },
    dropReplies(drops = ALWAYS) {
      dropsReplies = drops;
      for (const { replies } of open()) replies.drop(drops);
    },
    heal() {
      dropsRequests = dropsReplies = holdsRequests = NEVER;
      for (const { requests, replies } of open()) {
        requests.pass();
        replies.pass();
      }
    },
    delay(ms) {
      way.delayMs = ms;
    },
    nextDroppedReply: () => new Promise((resolve) => onDroppedReply.push(resolve)),
    cut,
    leadTo(port) {
      targetPort = port;
    },
    refuse() {
      isOpen = false;
      cut();
    },
    /** The same, by resets: a write of the client that follows at once fails. */
    refuseRudely() {
      isOpen = false;
      reset();
    },
    welcome() {
      isOpen = true;
    },
    subscribers: {
      cut: () => subscribers().forEach((wire) => wire.cut()),
      refuse() {
        maySubscribe = false;
        subscribers().forEach((wire) => wire.cut());
      },
      swallow: () => subscribers().forEach(({ replies }) => replies.drop()),
      loseServer: () => subscribers().forEach((wire) => wire.loseServer()),
      hold: () => subscribers().forEach(({ replies }) => replies.hold()),
      heal() {
        maySubscribe = true;
        for (const { replies } of wires) replies.release();
      },
    },
    async stop() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
