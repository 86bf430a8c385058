// The page: what is chosen becomes a request, and the answer becomes cards.

import { Problem, call, key, setKey } from "./api.js";
import { byId, count, el, number } from "./dom.js";
import { Pictures, moves, takeFiles } from "./pictures.js";
import { clear, mark, show } from "./problems.js";
import { asked, broken, chosen, mode, orient, together, wanted } from "./request.js";
import { ranking, scores } from "./results.js";
import { SAMPLES, drawn, file } from "./samples.js";
import { curl, python } from "./snippets.js";

const CHOSEN_AT_FIRST = 3; // metrics
const ASK_AGAIN_MS = 3000; // while the service is not ready

let metrics = {};
let limits = {};
let running = null;

const changed = (sentence) => {
  said(sentence);
  clear(places);
  refresh();
};
const pictures = new Pictures("pictures", "picture", 128, changed);
const references = new Pictures("references", "reference", 3, changed);
const source = new Pictures("source", "source", 1, changed);
const places = { pictures, references, source };
const said = (sentence) => (byId("said").textContent = sentence);

// --- what the service offers ---------------------------------------------------------------------

/** Whether the service is ready, and why not; asked again until it is. */
async function watch() {
  const [text, kind, reason] = await readiness();
  byId("state").textContent = text;
  byId("state").className = `state ${kind}`;
  byId("not-ready").textContent = reason;
  byId("not-ready").hidden = !reason;
  if (reason) setTimeout(watch, ASK_AGAIN_MS);
  if (text !== "No answer" && (!reason || !Object.keys(metrics).length)) await offer();
}

async function readiness() {
  try {
    await call("readyz");
    return ["Ready", "ready", ""];
  } catch (problem) {
    return problem.status === 503
      ? ["Not ready", "waiting", `The service is not ready yet: ${problem.message}. This page keeps asking.`]
      : ["No answer", "waiting", "The service does not answer. This page keeps asking."];
  }
}

/** Whether all models are demo models, except for one that reads text: the demo's profile has a real one. */
function onlyDemos(models) {
  const judging = models.filter(({ role }) => role !== "ocr");
  return judging.length > 0 && judging.every(({ demo }) => demo);
}

/** The metrics, as far as the service tells them; what was chosen stays so. */
async function offer() {
  try {
    const { body } = await call("models");
    ({ metrics, limits } = body);
    byId("demo").hidden = !onlyDemos(body.models);
  } catch (problem) {
    if (problem.status === 401) return askForKey("This service asks for a key.");
    return show(problem, places, offer);
  }
  byId("upright").checked ||= limits.orient === "exif";
  const names = Object.keys(metrics);
  const whole = names.filter((name) => metrics[name].ready && !metrics[name].only && !metrics[name].needs);
  const before = chosen();
  const fixed = (name) => (metrics[name].range ?? []).every(Number.isInteger); // not by an operator's weights
  const likely = [...whole.filter(fixed), ...whole.filter((name) => !fixed(name))];
  const first = before.length ? before : likely.slice(0, CHOSEN_AT_FIRST);
  byId("metrics").replaceChildren(...names.map((name) => pill(name, first.includes(name))));
  byId("metric").replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  byId("metric").value = first[0] ?? names[0];
  byId("cascade").replaceChildren(el("option", { value: "" }, "nothing"), ...names.map((name) => el("option", { value: name }, name)));
  pictures.most = limits.max_items;
  references.most = limits.max_references;
  refresh();
}

function pill(name, checked) {
  const { ready, only, range, formula, paper } = metrics[name];
  const note = ready ? (only ? `only ${only}` : null) : "not ready";
  return el(
    "label",
    { title: [formula, `${range[0]} to ${range[1]}`, paper, note].filter(Boolean).join("\n") },
    el("input", { type: "checkbox", value: name, checked }),
    el("span", {}, name, note && el("small", {}, ` ${ready ? "own questions" : note}`)),
  );
}

function askForKey(why) {
  openKey(true);
  byId("key").focus();
  said(why);
}

function openKey(open) {
  byId("key-panel").hidden = !open;
  byId("key-toggle").setAttribute("aria-expanded", String(open));
}

// --- the request ---------------------------------------------------------------------------------

/** Name what is missing, beside where it goes.  True where nothing is. */
function complete() {
  const missing = [
    !pictures.list.length && ["pictures", "Choose at least one picture."],
    !byId("prompt").value.trim() && ["prompt", "Write what the picture should show."],
    mode() === "score" && !chosen().length && ["metrics", "Choose at least one metric."],
    ...["options", "geneval"].map((field) => broken(field) && [field, "This is not a JSON object."]),
    tooLarge() && ["pictures", `Together they are larger than the ${limits.body_limit_mb} MB that a request may have.`],
  ].filter(Boolean);
  const places = missing.map(([field, message]) => mark(field, message));
  places[0]?.focus();
  return !missing.length;
}

const tooLarge = () =>
  Object.values(places).flatMap(({ sent }) => sent).reduce((sum, { file }) => sum + file.size, 0) > (limits.body_limit_mb ?? Infinity) * 2 ** 20;

/** Send what is wanted, and show the answer or what went wrong. */
async function send() {
  running?.abort();
  clear(places);
  if (!complete()) return;
  const { path, request, files } = wanted(places, limits.orient);
  const seen = orient();
  const cards = pictures.list.map(({ file, url }) => ({ prompt: byId("prompt").value, url, name: file.name, type: file.type }));
  const form = new FormData();
  form.append("request", JSON.stringify(request));
  for (const { part, file } of Object.values(files).flat()) form.append(part, file, file.name);
  const mine = (running = new AbortController());
  busy(true);
  try {
    const answer = await call(path, { form, signal: mine.signal });
    byId("out").replaceChildren(...[path === "rank" ? ranking(answer, cards, metrics) : scores(answer, cards, metrics)].flat(2).filter(Boolean));
    byId("out").dataset.orient = seen;
    said(path === "rank" ? inOrder(answer.body) : inWords(answer.body));
    if (matchMedia("(max-width: 60rem)").matches) byId("out").scrollIntoView({ block: "start" });
  } catch (error) {
    if (error.name === "AbortError") return running === mine && said("Stopped.");
    const problem = error instanceof Problem ? error : new Problem({ title: "The page failed", detail: String(error) });
    byId("out").replaceChildren();
    show(problem, places, send);
    if (problem.status === 401) askForKey(problem.message);
  } finally {
    if (running === mine) busy(false);
  }
}

function busy(on) {
  if (!on) running = null;
  byId("stop").hidden = !on;
  byId("out").setAttribute("aria-busy", String(on));
  document.body.classList.toggle("busy", on);
  if (on) said("Scoring.");
}

const inWords = ({ results, partial }) =>
  `${count(results.length, together() ? "scene" : "picture")} scored. ` +
  results
    .slice(0, 3)
    .map(({ scores }) => Object.entries(scores).map(([name, score]) => `${name} ${number(score)}`).join(", "))
    .join("; ") +
  (partial ? ". Some scores are missing." : ".");

const inOrder = ({ ranking: [best, ...others] }) =>
  `${count(others.length + 1, "picture")} ranked. Picture ${best.index + 1} is first` +
  (best.score === null || best.score === undefined ? "." : `, with ${number(best.score)}.`);

// --- the form ------------------------------------------------------------------------------------

/** What depends on what is chosen: the fields of the mode, the button, the code. */
function refresh() {
  const rank = mode() === "rank";
  byId("ask").dataset.orient = orient();
  document.querySelectorAll(".for-score").forEach((node) => (node.hidden = rank));
  document.querySelectorAll(".for-rank").forEach((node) => (node.hidden = !rank));
  byId("keep-field").hidden = !byId("cascade").value;
  byId("samples").hidden = pictures.list.length > 0;
  byId("geneval-field").hidden = !asked().includes("geneval");
  const [several, moving] = [pictures.list.length > 1 && !rank, pictures.list.some(({ file }) => moves(file))];
  byId("frames-field").hidden = !several && !moving;
  byId("together-field").hidden = !several;
  byId("clip").hidden = !moving;
  besides(rank);
  byId("go").textContent = rank ? "Rank" : "Score";
  byId("code").hidden = !pictures.list.length || !byId("prompt").value || broken("options") || broken("geneval");
  if (byId("code").hidden) return;
  const language = document.querySelector('input[name="language"]:checked').value;
  byId("snippet").textContent = (language === "curl" ? curl : python)(wanted(places, limits.orient));
}

/** The fields for pictures beside the images, where a chosen metric looks at them; a ranking has none. */
function besides(rank) {
  for (const [name, { field }] of [["references", references], ["source", source]]) {
    const users = asked().filter((metric) => metrics[metric]?.uses?.includes(name));
    field.hidden = rank || !users.length;
    byId(`${name}-note`).textContent = `For ${users.join(", ")}, under some options.`;
  }
}

async function sample({ mode, prompt, scenes }) {
  document.querySelector(`input[name="mode"][value="${mode}"]`).checked = true;
  byId("prompt").value = prompt;
  pictures.replace(await Promise.all(scenes.map(file)));
  byId("go").focus();
}

async function copy() {
  const text = byId("snippet").textContent;
  try {
    await navigator.clipboard.writeText(text);
    said("Copied.");
    byId("copy").textContent = "Copied";
    setTimeout(() => (byId("copy").textContent = "Copy"), 1500);
  } catch {
    getSelection().selectAllChildren(byId("snippet")); // no clipboard without https
    byId("snippet").focus();
    said("Selected: press Ctrl + C.");
  }
}

/** Send the form on Ctrl+Enter in any of its fields, and on a sample with that sample. */
async function atOnce(event, before = () => {}) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.stopPropagation(); // to the form, whose listener this is too
  await before();
  send();
}

byId("samples").querySelector("ul").append(
  ...SAMPLES.map((one) =>
    el(
      "li",
      { class: one.scenes.length > 1 && "several" },
      el(
        "button",
        { type: "button", click: () => sample(one), keydown: (event) => atOnce(event, () => sample(one)) },
        el("span", { class: "canvases", "aria-hidden": "true" }, one.scenes.map((scene) => drawn(scene, 192))),
        el("span", {}, one.mode === "rank" && el("strong", {}, "Rank three: "), one.prompt),
      ),
    ),
  ),
);
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
byId("ask").addEventListener("input", refresh);
byId("code").addEventListener("change", refresh);
byId("copy").addEventListener("click", copy);
byId("stop").addEventListener("click", () => running?.abort());
byId("ask").addEventListener("keydown", (event) => atOnce(event));
byId("key-toggle").addEventListener("click", () => {
  openKey(byId("key-panel").hidden);
  if (!byId("key-panel").hidden) byId("key").focus();
});
byId("key-panel").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("key").value.trim());
  openKey(false);
  byId("key-toggle").focus();
  clear(places);
  offer();
});
takeFiles([pictures, references, source]);
byId("key").value = key();
refresh();
watch();
