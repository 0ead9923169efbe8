/** A queue of promises in one process, without Redis: the least that a hand-off costs there. */
async function open() {
  const waiting = [];
  let isHeld = false;
  return {
    async section(_key, work) {
      if (isHeld) await new Promise((next) => waiting.push(next));
      isHeld = true;
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else isHeld = false;
      }
    },
  };
}

export const forms = { queue: open };
