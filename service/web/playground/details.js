// What a score is made of: the questions as a tree, the prompt word by word, the text that was read, the boxes, the rest.

import { boxes, drawable, verdict } from "./boxes.js";
import { bar, count, el, number } from "./dom.js";
import { frames } from "./frames.js";

const SHOWN = new Set(["questions", "words", "uncovered", "provenance", "read", "wanted", "lines", "distance", "parts", "frames", "grid"]);
const SHOWN_WITH_BOXES = new Set(["boxes", "width", "height"]);
const SHOWN_WITH_VERDICT = new Set(["correct", "reason"]);

const LEVELS = 5; // colours of words, as in style.css
const YES_NO = new Set([undefined, "yes", "no"]); // what the others expect is worth saying

/** The details of one metric; what it has none of is not there. */
export function details({ prompt, url }, found, range) {
  return [
    found.frames && frames(found.frames, range, (one) => details({ prompt }, one)),
    found.grid && details({ prompt }, found.grid),
    judged(found) && verdict(found),
    url && drawable(found) && boxes(url, found),
    found.words && words(prompt, found.words),
    found.questions && questions(found.questions),
    typeof found.read === "string" && reading(found),
    found.parts && Object.entries(found.parts).map(([name, part]) => partOf({ prompt, url }, name, part)),
    rest(found),
  ];
}

function partOf(asked, name, part) {
  return el(
    "section",
    { class: "part" },
    el("h5", {}, name, el("span", { class: "quiet" }, ` ${number(part.score)}, adds ${number(part.contribution)}`)),
    details(asked, part.details ?? {}),
  );
}

const judged = ({ correct }) => typeof correct === "boolean";

/** The prompt as it was written, each word in the colour of its score. */
function words(prompt, scored) {
  const line = el("p", { class: "words" });
  let at = 0;
  for (const { word, score } of scored) {
    const start = prompt.indexOf(word, at);
    if (start < 0) continue;
    line.append(prompt.slice(at, start), coloured(word, score));
    at = start + word.length;
  }
  line.append(prompt.slice(at));
  return line;
}

function coloured(word, score) {
  if (score === null) return el("span", { class: "word unasked", title: "no question is about this word" }, word);
  const level = Math.min(LEVELS - 1, Math.max(0, Math.floor(score * LEVELS)));
  return el("span", { class: `word level-${level}`, title: number(score) }, word, hidden(` (${number(score)})`));
}

const hidden = (text) => el("span", { class: "hidden" }, text);

/** The questions, each below the first one that it depends on. */
function questions(asked) {
  const ids = new Set(asked.map(({ id }) => id));
  const parent = (question) => (question.depends_on ?? []).find((id) => ids.has(id) && id !== question.id);
  const children = new Map();
  for (const question of asked) {
    const place = parent(question) ?? null;
    children.set(place, [...(children.get(place) ?? []), question]);
  }
  const seen = new Set();
  const branch = (id) => {
    const fresh = (children.get(id) ?? []).filter((question) => !seen.has(question.id));
    fresh.forEach((question) => seen.add(question.id));
    return fresh.length
      ? el("ul", {}, fresh.map((question) => el("li", {}, asking(question), branch(question.id))))
      : null;
  };
  const roots = branch(null);
  const looped = asked.filter(({ id }) => !seen.has(id)); // a set that somebody sent along
  return el("div", { class: "questions" }, roots, looped.length > 0 && el("ul", {}, looped.map((q) => el("li", {}, asking(q)))));
}

function asking(question) {
  const { id, text, kind, expected, answer, score, depends_on: needs = [], zeroed_by: zeroed = [] } = question;
  const sure = question.probability ?? question.probabilities?.[answer] ?? score;
  const good = score === null ? "open" : score >= 0.5 ? "yes" : "no";
  const notes = [
    kind,
    needs.length > 1 && `needs ${needs.join(", ")}`,
    zeroed.length > 0 && `counts 0, as ${zeroed.join(", ")} was answered no`,
    answer !== undefined && expected !== undefined && !YES_NO.has(expected) && answer !== expected && `expected ${expected}`,
    question.contribution !== undefined && `adds ${number(question.contribution)}`,
    question.dropped === true && "left out: not in the prompt",
  ].filter(Boolean);
  return el(
    "div",
    { class: `question ${good}` },
    el("span", { class: "id" }, String(id)),
    el("span", { class: "text" }, text, notes.length > 0 && el("small", {}, notes.join(" · "))),
    el("span", { class: "answer" }, answer ?? expected ?? ""),
    bar(sure),
    el("span", { class: "figure" }, number(sure)),
  );
}

/** The text that was wanted, and what stands in the picture. */
function reading({ wanted, read, lines = [] }) {
  return el(
    "dl",
    { class: "reading" },
    el("dt", {}, "wanted"),
    el("dd", {}, wanted ?? "–"),
    el("dt", {}, "read"),
    el("dd", {}, read || "nothing", lines.length > 1 && el("small", {}, ` in ${count(lines.length, "line")}`)),
  );
}

/** Everything else, as it came: metrics of other packages have details of their own. */
function rest(found) {
  const shownAbove = (name) =>
    SHOWN.has(name) || (drawable(found) && SHOWN_WITH_BOXES.has(name)) || (judged(found) && SHOWN_WITH_VERDICT.has(name));
  const left = Object.entries(found).filter(([name, value]) => !shownAbove(name) && value !== null);
  if (!left.length) return null;
  return el(
    "details",
    { class: "rest" },
    el("summary", {}, "Numbers"),
    el("dl", { class: "numbers" }, left.map(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(value))])),
  );
}

function shown(value) {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : number(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
