// The answers of `POST /score` and `POST /rank` as cards.

import { drawable, toggle } from "./boxes.js";
import { details } from "./details.js";
import { bar, el, milliseconds, number } from "./dom.js";
import { preview } from "./pictures.js";

/** One card for each picture, then what the request took. */
export function scores({ body, text, took }, asked, metrics) {
  const open = body.results.length <= 2;
  const cards = body.results.map((result, index) => card(result, asked[index], metrics, open));
  return [warnings(body), body.results.some(boxed) && toggle(), cards, footer(body, text, took)];
}

const boxed = ({ details = {} }) => Object.values(details).some((found) => [found, ...partsOf(found)].some(drawable));
const partsOf = ({ parts = {} }) => Object.values(parts).map((part) => part.details ?? {});

function card(result, asked, metrics, open) {
  const { prompt, url, name, type } = asked;
  return el(
    "article",
    { class: "card result", "aria-label": `Picture ${result.index + 1}` },
    el("header", {}, preview(url, `Picture ${result.index + 1}: ${name}`, type), el("p", { class: "prompt" }, prompt)),
    el(
      "div",
      { class: "scores" },
      Object.entries(result.scores).map(([metric, score]) =>
        scored(metric, score, metrics[metric], asked, result.details?.[metric], open),
      ),
      faults(result.errors ?? {}),
    ),
  );
}

function scored(name, score, metric, asked, found, open) {
  return el(
    "section",
    { class: "score" },
    el("h3", { title: metric?.formula }, name),
    bar(score, metric?.range),
    el("span", { class: "figure" }, number(score)),
    found && why(name, asked, found, metric, open && OPEN.some((part) => found[part])),
  );
}

const OPEN = ["questions", "read", "parts", "boxes", "frames"];

function why(name, asked, found, metric, open) {
  const more = details(asked, found, metric?.range).flat(Infinity).filter(Boolean);
  return more.length > 0 && el("details", { class: "why", open }, el("summary", {}, "Why", el("span", { class: "hidden" }, ` ${name}`)), more);
}

/** Metrics without a score say why, together where it is the same; none is ever shown as a 0. */
function faults(errors) {
  const named = new Map();
  for (const [name, { code, detail }] of Object.entries(errors)) {
    const names = named.get(detail)?.names ?? [];
    named.set(detail, { code, names: [...names, name] });
  }
  return [...named].map(([detail, { code, names }]) =>
    el("section", { class: "score failed" }, el("h3", {}, names.join(", ")), el("p", { class: "error" }, detail, " ", el("code", {}, code))),
  );
}

/** The pictures in their order, best first. */
export function ranking({ body, text, took }, asked, metrics) {
  const told = body.ranking.some(({ accepted }) => !accepted); // where all are, nothing was asked of them
  const rows = body.ranking.map((ranked, place) => rankedRow(ranked, place, asked[ranked.index], metrics, told));
  return [
    warnings(body),
    body.ranking.some(boxed) && toggle(),
    el(
      "article",
      { class: "card" },
      el("p", { class: "prompt" }, asked[0].prompt),
      el("ol", { class: "ranking" }, rows),
    ),
    footer(body, text, took),
  ];
}

function rankedRow({ index, score, accepted, decided_by: by, error, details = {} }, place, asked, metrics, told) {
  const { url, name, type } = asked;
  const notes = [told && (accepted ? "accepted" : "not accepted"), by && `by ${by}`].filter(Boolean);
  return el(
    "li",
    { class: accepted ? "accepted" : "cut" },
    el("span", { class: "place" }, String(place + 1)),
    preview(url, `Picture ${index + 1}: ${name}`, type),
    el("span", { class: "name" }, name, el("small", {}, notes.join(" · "))),
    error
      ? el("p", { class: "error" }, error.detail, " ", el("code", {}, error.code))
      : [bar(score, metrics[by]?.range), el("span", { class: "figure" }, number(score))],
    Object.entries(details).map(([metric, found]) => why(metric, asked, found, metrics[metric], false)),
  );
}

/** The warnings, each once: with its pictures, which count from 1 as the cards do, and its metrics. */
function warnings({ warnings: said = [], warning_codes: codes = [] }) {
  const lines = new Map();
  said.forEach((line, place) => {
    const { item, metric } = codes[place] ?? {};
    const subject = item === undefined ? "" : `item ${item}${metric ? `, ${metric}` : ""}: `;
    const text = line.startsWith(subject) ? line.slice(subject.length) : line;
    const about = lines.get(text) ?? { pictures: new Set(), metrics: new Set() };
    if (item !== undefined) about.pictures.add(item + 1);
    if (metric) about.metrics.add(metric);
    lines.set(text, about);
  });
  const entries = [...lines].map(([text, { pictures, metrics }]) => {
    const numbers = [...pictures].join(", ");
    const named = [numbers && `Picture${pictures.size > 1 ? "s" : ""} ${numbers}`, ...metrics].filter(Boolean);
    return el("li", {}, named.length > 0 ? `${named.join(", ")}: ${text}` : text);
  });
  return entries.length > 0 && el("ul", { class: "card warnings", "aria-label": "Warnings" }, entries);
}

/** Timings, models, the request's id, and the answer as it came. */
function footer(body, text, took) {
  const stages = Object.entries(body.timings_ms ?? {});
  return el(
    "footer",
    { class: "about" },
    el(
      "dl",
      { class: "timings", "aria-label": "Timings" },
      [...stages, ["round trip", took]].map(([name, ms]) => el("div", {}, el("dt", {}, name), el("dd", {}, milliseconds(ms)))),
    ),
    el(
      "details",
      {},
      el("summary", {}, "The whole answer"),
      el("p", { class: "quiet" }, "request ", el("code", {}, body.request_id)),
      el("pre", { tabindex: "0", "aria-label": "The answer as JSON" }, JSON.stringify(JSON.parse(text), null, 2)),
    ),
  );
}
