// The page of demonstrations. It hears over server-sent events what happens, and asks for a run by a POST.

const state = document.querySelector('#state');
const list = document.querySelector('#scenarios');
const template = document.querySelector('#scenario');

/** @type {Map<string, ReturnType<typeof card>>} */
const cards = new Map();
let running;

const say = (text, isWrong = false) => {
  state.textContent = text;
  state.classList.toggle('wrong', isWrong);
};

const setRunning = (name) => {
  running = name;
  for (const { button } of cards.values()) button.disabled = name !== undefined;
};

/** Shows a scenario, and what happens in it. */
function card({ name, title, story, lock }) {
  const section = template.content.firstElementChild.cloneNode(true);
  const find = (selector) => section.querySelector(selector);
  section.id = name;
  find('h2').textContent = title;
  find('.story').textContent = `${story[0].toUpperCase()}${story.slice(1)}.`;
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
    progress({ answered, of, figure: value }) {
      bar.max = of;
      bar.value = answered;
      figure.textContent = `${answered} of ${of} answered${value === null ? '' : ` · ${value} in the database`}`;
    },
    outcome({ accident, accidents, expected, actual }) {
      const isRight = accidents === 0;
      verdict.className = `verdict ${isRight ? 'good' : 'bad'}`;
      verdict.textContent = isRight
        ? `No accident: ${actual}`
        : `${accidents} ${accident}: ${actual}. Expected: ${expected}`;
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
        ({ lock, perSecond, p50Ms, p99Ms }) =>
          `${lock ? 'with' : 'without'}: ${perSecond}/s, wait p50 ${p50Ms} ms, p99 ${p99Ms} ms`,
      );
      caption.textContent = `Answers over time. ${texts.join(' · ')}`;
    },
  };
}

async function run(scenario) {
  setRunning(scenario);
  say(`${cards.get(scenario).title}: three processes start…`);
  try {
    const response = await fetch('demo/runs', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ scenario }),
    });
    if (!response.ok) throw new Error([(await response.json()).message].flat().join(' '));
  } catch (error) {
    setRunning(undefined);
    say(error.message, true);
  }
}

const handlers = {
  ready({ scenarios }) {
    for (const scenario of scenarios) if (!cards.has(scenario.name)) cards.set(scenario.name, card(scenario));
    if (!running) say('Ready.');
  },
  began({ scenario, processes }) {
    setRunning(scenario);
    cards.get(scenario)?.begin();
    say(`${cards.get(scenario)?.title}: the crowd comes to ${processes} processes.`);
  },
  progress: (news) => cards.get(news.scenario)?.progress(news),
  outcome: (news) => cards.get(news.scenario)?.outcome(news),
  ended({ scenario }) {
    setRunning(undefined);
    say(`${cards.get(scenario)?.title}: done. The processes have ended.`);
  },
  failed({ scenario, reason }) {
    setRunning(undefined);
    say(`${cards.get(scenario)?.title ?? scenario}: ${reason}`, true);
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
