"use strict";

const PAGE = 10;
const MISSING = "–";
const content = JSON.parse(document.getElementById("content").textContent);
const { generators, metrics, lower, skill, prompts } = content;
const element = (id) => document.getElementById(id);
const pairs = generators.flatMap((_, a) => generators.slice(a + 1).map((_, next) => [a, a + 1 + next]));
const state = { page: 0, shown: [] };

function made(tag, text, name) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
}

function offer(id, texts) {
  element(id).replaceChildren(...texts.map((text, place) => Object.assign(made("option", text), { value: place })));
}

const number = (value) => (value === null || value === undefined ? MISSING : value.toFixed(4).replace(/^-(0\.0+)$/, "$1"));
const chosen = (id) => Number(element(id).value);
const pair = () => pairs[chosen("pair")];

// How much better the first of the pair is; null if a score is missing.
function difference(prompt) {
  const [a, b] = pair().map((side) => prompt.means[side][chosen("metric")]);
  return a === null || b === null ? null : a - b;
}

function ordered(list) {
  const sign = lower[chosen("metric")] ? -1 : 1;
  const worth = (prompt) => sign * difference(prompt);
  const value = [(each) => -worth(each), worth, (each) => -Math.abs(worth(each))][chosen("order")];
  const whole = list.filter((each) => difference(each) !== null);
  const rest = list.filter((each) => difference(each) === null);
  const keys = new Map(whole.map((each) => [each, value(each)]));
  return [...whole.sort((a, b) => keys.get(a) - keys.get(b)), ...rest];
}

function select() {
  const text = element("text").value.trim().toLowerCase();
  const tag = element("skill").selectedIndex > 0 ? element("skill").selectedOptions[0].textContent : null;
  const fits = (each) => (!tag || each.tags.includes(tag)) && each.text.toLowerCase().includes(text);
  state.shown = ordered(prompts.filter(fits));
  state.page = 0;
  draw();
}

function draw() {
  const pages = Math.max(1, Math.ceil(state.shown.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const here = state.shown.slice(state.page * PAGE, (state.page + 1) * PAGE);
  seen.disconnect();
  element("prompts").replaceChildren(...here.map(article));
  element("count").textContent = `${state.shown.length} of ${prompts.length} prompts, page ${state.page + 1} of ${pages}`;
  element("place").textContent = `${state.page + 1} of ${pages}`;
  element("before").disabled = state.page === 0;
  element("after").disabled = state.page === pages - 1;
}

function turn(page) {
  state.page = page;
  draw();
  element("prompts").focus({ preventScroll: true });
  element("prompts").scrollIntoView();
}

function article(prompt) {
  const node = made("article");
  const apart = difference(prompt);
  const [a, b] = pair();
  const said = `${metrics[chosen("metric")]}: ${generators[a]} − ${generators[b]} = ${number(apart)}`;
  const sign = lower[chosen("metric")] ? -1 : 1;
  const better = !apart ? -1 : sign * apart > 0 ? a : b;
  const sides = made("div", undefined, "sides");
  sides.append(...generators.map((_, side) => column(prompt, side, side === better)));
  node.append(made("h2", prompt.text), made("small", [said, ...prompt.tags].join(" · ")), sides, ...asked(prompt));
  return node;
}

function column(prompt, side, better) {
  const node = made("div", undefined, better ? "side better" : "side");
  const name = better ? `${generators[side]} (better)` : generators[side];
  const several = made("div", undefined, "several");
  several.append(...prompt.pictures[side].map((each, place) => figure(prompt, side, place, each)));
  const facts = made("dl");
  metrics.forEach((metric, place) => {
    facts.append(made("dt", metric), made("dd", number(prompt.means[side][place])));
  });
  node.append(made("h3", name), several, facts);
  if (!prompt.pictures[side].length) several.append(made("p", "no picture", "none"));
  if (prompt.more[side] > 0) node.append(made("small", `and ${prompt.more[side]} more pictures`));
  node.append(...prompt.errors[side].map((each) => made("p", each, "bad")));
  return node;
}

function figure(prompt, side, place, [name, scores]) {
  const node = made("figure");
  const picture = made("img");
  picture.alt = `${generators[side]}: ${prompt.text}`;
  picture.width = 256;
  Object.assign(picture.dataset, { prompt: prompts.indexOf(prompt), side, place });
  const values = prompt.pictures[side].length > 1 ? scores.map(number).join(", ") : "";
  const caption = made("figcaption");
  caption.append(made("small", [name, values].filter(Boolean).join(": ")));
  node.append(picture, caption);
  seen.observe(picture);
  return node;
}

// The questions that one of the pair passes and the other fails.
function asked(prompt) {
  const [a, b] = pair();
  const found = prompt.questions.filter(([, , passed]) => passed[a] !== null && passed[b] !== null && passed[a] !== passed[b]);
  if (!found.length) return [];
  const list = made("ul", undefined, "questions");
  list.append(
    ...found.map(([metric, text, passed]) => {
      const [one, other] = passed[a] ? [a, b] : [b, a];
      return made("li", `${metric}: ${text} ${generators[one]} passes, ${generators[other]} fails`);
    }),
  );
  return [list];
}

// A picture's data are parsed when it is near the window.
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      const { prompt, side, place } = target.dataset;
      const address = JSON.parse(element(`pictures-${prompt}`).textContent)[side][place];
      if (address) target.src = address;
      else target.replaceWith(made("p", "no picture to show", "none"));
    }
  },
  { rootMargin: "256px" },
);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, .wide")) return;
  const to = { ArrowRight: state.page + 1, ArrowLeft: state.page - 1, Home: 0, End: Infinity }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  turn(to);
});

offer("metric", metrics);
offer("pair", pairs.map(([a, b]) => `${generators[a]} – ${generators[b]}`));
const tags = [...new Set(prompts.flatMap((each) => each.tags))].sort();
offer("skill", ["all", ...tags]);
element("skill-label").hidden = !tags.length;
element("skill-label").firstChild.textContent = `${skill} `;
function orders() {
  const [a, b] = pair();
  const kept = element("order").selectedIndex;
  offer("order", [`${generators[a]} better first`, `${generators[b]} better first`, "largest difference first"]);
  element("order").selectedIndex = Math.max(kept, 0);
}
orders();
for (const id of ["metric", "pair", "order", "skill"]) {
  element(id).addEventListener("change", () => {
    if (id === "pair") orders();
    select();
  });
}
element("text").addEventListener("input", select);
element("before").addEventListener("click", () => turn(state.page - 1));
element("after").addEventListener("click", () => turn(state.page + 1));
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
select();
