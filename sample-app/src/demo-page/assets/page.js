// The page of demonstrations. It hears over server-sent events what happens, and asks for a run by a POST.

const state = document.querySelector('#state');
const list = document.querySelector('#scenarios');
const template = document.querySelector('#scenario');

/** How much of the past a lane shows, and how long a frame lasts, in ms. */
const LANE_MS = 20_000;
const FRAME_MS = 100;
/** Over how long a rate is taken, in ms. */
const RATE_MS = 2_000;

/** @type {Map<string, ReturnType<typeof card>>} */
const cards = new Map();
/** The name of what runs, if something does. */
let running;
/** Whether the live stage has shown itself, since it began. */
let isOn = false;

const stage = stageOf(document.querySelector('#live'));

const say = (text, isWrong = false) => {
  state.textContent = text;
  state.classList.toggle('wrong', isWrong);
};

const setRunning = (name) => {
  running = name;
  for (const { button } of cards.values()) button.disabled = name !== undefined;
  stage.enable(name);
};

/** Shows a scenario, and what happens in it. */
function card({ name, title, story, why, lock }) {
  const section = template.content.firstElementChild.cloneNode(true);
  const find = (selector) => section.querySelector(selector);
  section.id = name;
  find('h2').textContent = title;
  find('.story').textContent = `${story[0].toUpperCase()}${story.slice(1)}. ${why}`;
  find('.lock').textContent = lock;
  const button = find('button');
  button.addEventListener('click', () => void run(name));
  button.setAttribute('aria-label', `${title}: run without and with the lock`);

  const halves = new Map([false, true].map((hasLock) => [hasLock, half(find(hasLock ? '.with' : '.without'))]));
  const plot = plotOf(find('figure'), title);
  list.append(section);
  return {
    button,
    title,
    begin() {
      for (const one of halves.values()) one.begin();
      plot.begin();
    },
    progress(news) {
      halves.get(news.lock).progress(news);
      plot.add(news);
    },
    outcome(news) {
      halves.get(news.lock).outcome(news);
      plot.outcome(news);
    },
    fail() {
      for (const one of halves.values()) one.fail();
    },
  };
}

/** Shows one half of a demonstration: the crowd with the lock, or without it. */
function half(element) {
  const verdict = element.querySelector('.verdict');
  const bar = document.createElement('progress');
  const figure = document.createElement('p');
  figure.className = 'figure';
  bar.value = 0;
  bar.setAttribute('aria-label', 'answered');
  verdict.before(bar, figure);
  return {
    begin() {
      bar.value = 0;
      figure.textContent = '';
      verdict.className = 'verdict';
      verdict.textContent = '…';
    },
    fail() {
      if (verdict.textContent === '…') verdict.textContent = '–';
    },
    progress({ answered, of, figure: value }) {
      bar.max = of;
      bar.value = answered;
      figure.textContent = `${answered} of ${of} answered${value === null ? '' : ` · ${value} in the database`}`;
    },
    outcome({ accident, accidents, expected, actual, statuses }) {
      const isDone = Object.keys(statuses).some((status) => status.startsWith('2'));
      const isRight = isDone && accidents === 0;
      verdict.className = `verdict ${isRight ? 'good' : 'bad'}`;
      verdict.textContent = isRight
        ? `No accident: ${actual}.`
        : isDone
          ? `${accidents} ${accident}: ${actual}. It should be: ${expected}.`
          : `Nothing was done: each answer was ${Object.keys(statuses).join(' or ')}.`;
    },
  };
}

/** Draws how the answers came in, over time. */
function plotOf(element, title) {
  const svg = element.querySelector('svg');
  const caption = element.querySelector('figcaption');
  let points;
  let outcomes;

  const draw = () => {
    const longest = Math.max(1, ...[...points.values()].flat().map(({ ms }) => ms));
    const lines = [...points].map(([lock, of]) => {
      const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
      line.setAttribute('class', lock ? 'with' : 'without');
      line.setAttribute(
        'points',
        ['0,68', ...of.map(({ ms, share }) => `${(ms / longest) * 300},${68 - share * 64}`)].join(' '),
      );
      return line;
    });
    svg.replaceChildren(...lines);
    svg.setAttribute('aria-label', `${title}: answers over ${(longest / 1000).toFixed(1)} s`);
  };

  return {
    begin() {
      points = new Map([
        [false, []],
        [true, []],
      ]);
      outcomes = new Map();
      element.hidden = false;
      caption.textContent = 'Answers over time: with the lock (green), without it (red).';
      draw();
    },
    add({ lock, ms, answered, of }) {
      points.get(lock).push({ ms, share: answered / of });
      draw();
    },
    outcome(news) {
      outcomes.set(news.lock, news);
      const texts = [...outcomes.values()].map(
        ({ lock, perSecond, p50Ms, p99Ms, cameAgain }) =>
          `${lock ? 'With the lock (green)' : 'Without the lock (red)'}: ${perSecond} done a second; half of the answers within ` +
          `${p50Ms} ms, 99 of 100 within ${p99Ms} ms${cameAgain ? `; ${cameAgain} times a client got a 409 and came again` : ''}.`,
      );
      caption.textContent = `Answers over time. ${texts.join(' ')}`;
    },
  };
}

/** Draws how a figure of the live stage changes, over the same time as the lanes. */
function sparkOf(element, what) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `0 0 ${LANE_MS} 100`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  svg.append(line);
  const scale = document.createElement('span');
  element.append(svg, scale);
  /** @param points `age` in ms, and `value` */
  return (points) => {
    const most = Math.max(0, ...points.map(({ value }) => value));
    const y = (value) => 96 - (value / (most || 1)) * 92;
    line.setAttribute('points', points.map(({ age, value }) => `${LANE_MS - age},${y(value)}`).join(' '));
    scale.textContent = `0 to ${most < 10 ? most.toFixed(1) : Math.round(most)} in the last 20 s`;
    svg.setAttribute('aria-label', `${what}: ${scale.textContent}`);
  };
}

/** Shows the live stage: the processes, where the lock is, and what the data says. */
function stageOf(section) {
  const find = (selector) => section.querySelector(selector);
  const buttons = [...section.querySelectorAll('button')];
  const rows = new Map();
  let frames = [];
  const plots = {
    rate: sparkOf(find('[data-plot=rate]'), 'withdrawals a second'),
    wait: sparkOf(find('[data-plot=wait]'), 'time to an answer, in ms'),
  };

  /** Withdrawals a second, over the last seconds before each frame. */
  const rates = () => {
    let from = 0;
    return frames.flatMap(({ at, done }, frame) => {
      while (at - frames[from + 1]?.at >= RATE_MS) from++;
      const first = frames[from];
      return at - first.at < RATE_MS || from === frame
        ? []
        : [{ at, value: (done - first.done) / ((at - first.at) / 1000) }];
    });
  };

  for (const button of buttons) button.addEventListener('click', () => void act(button.dataset.action));

  const row = (name) => {
    if (rows.has(name)) return rows.get(name);
    const element = document.createElement('tr');
    const cells = ['', '', ''].map(() => element.insertCell());
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', `0 0 ${LANE_MS} 10`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('aria-hidden', 'true');
    cells[1].append(svg);
    find('tbody').append(element);
    const made = { element, svg, title: cells[0], done: cells[2] };
    rows.set(name, made);
    return made;
  };

  /** The times in which a process held the lock, as far as the frames tell. */
  const held = (name, now) => {
    const spans = [];
    for (const { at, holders } of frames) {
      if (!holders.has(name)) continue;
      const x = LANE_MS - (now - at);
      const last = spans.at(-1);
      if (last && x - last.end < FRAME_MS * 1.8) last.end = x + FRAME_MS;
      else spans.push({ start: x, end: x + FRAME_MS });
    }
    return spans.map(({ start, end }) => {
      const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      for (const [key, value] of Object.entries({ x: start, y: 0, width: end - start, height: 10 }))
        rect.setAttribute(key, value);
      return rect;
    });
  };

  return {
    enable(name) {
      for (const button of buttons) {
        const isStart = button.dataset.action === 'start';
        button.disabled = isStart ? name !== undefined : name !== 'live' || !isOn;
      }
    },
    begin() {
      isOn = false;
      frames = [];
      rows.clear();
      find('tbody').replaceChildren();
      find('.seen').replaceChildren();
    },
    seen({ text }) {
      const line = document.createElement('li');
      line.textContent = text;
      const list = find('.seen');
      list.append(line);
      list.scrollTop = list.scrollHeight;
    },
    show({ processes, balance, lost, expected, done, refused, waitMs, ownsRedis }) {
      find('.stage').hidden = false;
      if (!isOn) {
        isOn = true;
        stage.enable(running);
      }
      find('[data-action=redis]').disabled = running !== 'live' || !ownsRedis;
      if (!ownsRedis) find('[data-action=redis] + span').textContent = 'not the one that you named (REDIS_URL)';
      const now = performance.now();
      frames.push({
        at: now,
        done,
        waitMs,
        holders: new Set(processes.filter(({ holds }) => holds).map(({ name }) => name)),
      });
      frames = frames.filter(({ at }) => now - at < LANE_MS);
      for (const { name, pid, state, done: own } of processes) {
        const { element, svg, title, done: count } = row(name);
        element.className = state;
        title.textContent = `${name} · ${pid}${state === 'running' ? '' : ` · ${state}`}`;
        count.textContent = own;
        svg.replaceChildren(...held(name, now));
      }
      const age = ({ at, value }) => ({ age: now - at, value });
      const perSecond = rates();
      plots.rate(perSecond.map(age));
      plots.wait(frames.map(({ at, waitMs }) => age({ at, value: waitMs })));
      find('.balance').textContent = balance ?? '–';
      find('.expected').textContent = expected;
      find('.lost').textContent = lost;
      find('.lost').classList.toggle('bad', lost > 0);
      find('.rate').textContent = perSecond.at(-1)?.value.toFixed(1) ?? '–';
      find('.wait').textContent = `${waitMs} ms`;
      find('.refused').textContent = refused;
    },
  };
}

async function act(action) {
  await post('demo/stage', { action }, action === 'start' ? 'live' : undefined);
}

async function run(scenario) {
  await post('demo/runs', { scenario }, scenario);
}

/** @param begins what runs then, if it does not fail */
async function post(path, body, begins) {
  const before = running;
  if (begins) setRunning(begins);
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error([(await response.json()).message].flat().join(' '));
  } catch (error) {
    if (begins) setRunning(before);
    say(error.message, true);
  }
}

const titleOf = (scenario) => cards.get(scenario)?.title ?? 'The lock, live';

const handlers = {
  ready({ scenarios }) {
    for (const scenario of scenarios) if (!cards.has(scenario.name)) cards.set(scenario.name, card(scenario));
    if (!running) say('Ready.');
  },
  starts({ scenario }) {
    setRunning(scenario);
    if (scenario === 'live') stage.begin();
    cards.get(scenario)?.begin();
    say(`${titleOf(scenario)}: three processes start…`);
  },
  began({ scenario, processes }) {
    say(`${titleOf(scenario)}: the crowd comes to ${processes} processes.`);
  },
  stage(news) {
    if (running !== 'live') setRunning('live');
    stage.show(news);
  },
  seen(news) {
    stage.seen(news);
    say(news.text);
  },
  progress: (news) => cards.get(news.scenario)?.progress(news),
  outcome: (news) => cards.get(news.scenario)?.outcome(news),
  ended({ scenario }) {
    isOn = false;
    setRunning(undefined);
    say(`${titleOf(scenario)}: done. The processes have ended.`);
  },
  failed({ scenario, reason }) {
    isOn = false;
    setRunning(undefined);
    cards.get(scenario)?.fail();
    say(`${titleOf(scenario)}: ${reason}`, true);
  },
};

const events = new EventSource('demo/events');
events.onopen = () => {
  setTimeout(
    () => cards.size === 0 && say('Demonstrations need the launcher. Start the shop with "npm start".', true),
    500,
  );
};
events.onmessage = ({ data }) => {
  const news = JSON.parse(data);
  handlers[news.news]?.(news);
};
events.onerror = () => {
  setRunning(undefined);
  say('The shop does not answer. Trying again…', true);
};
