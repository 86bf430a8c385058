// The scores of an item's frames, as a line over their times or numbers, and one by one.

import { el, number, svg } from "./dom.js";

const WIDTH = 560, HEIGHT = 150, LEFT = 54, RIGHT = 12, TOP = 10, BOTTOM = 26; // pixels of the plot and its margins

/** The plot and the list of frames; *more* makes the details of one. */
export function frames(list, range, more) {
  if (!list.every(({ score }) => Number.isFinite(score))) return null;
  const timed = list.every(({ time_s: time }) => Number.isFinite(time));
  const points = list.map((frame, index) => ({ frame, at: timed ? frame.time_s : index, score: frame.score }));
  return [
    points.length > 1 && plot(points, timed, range),
    el("div", { class: "frames" }, points.map(({ frame, at }) => one(frame, timed ? `${at.toFixed(2)} s` : `frame ${at}`, more))),
  ];
}

function one({ score, frame, time_s: time, ...found }, name, more) {
  return el("details", { class: "rest" }, el("summary", {}, `${name}: ${number(score)}`), more(found));
}

/** The scores as a line; the axis is the metric's range if that is finite and has them all, else their own. */
function plot(points, timed, range = []) {
  const scores = points.map(({ score }) => score);
  const own = [Math.min(...scores), Math.max(...scores)];
  const finite = range.length === 2 && range.every(Number.isFinite);
  const [least, most] = finite && range[0] <= own[0] && own[1] <= range[1] ? range : own;
  const [first, last] = [points[0].at, points.at(-1).at];
  const x = (at) => LEFT + ((at - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const y = (score) => HEIGHT - BOTTOM - ((score - least) / (most - least || 1)) * (HEIGHT - TOP - BOTTOM);
  const unit = timed ? "s" : "";
  const label = (text, attributes) => svg("text", attributes, text);
  return svg(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": spoken(scores, timed) },
    [least, most].map((score) => [
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(score), y2: y(score) }),
      label(number(score), { x: LEFT - 6, y: y(score) + 4, "text-anchor": "end" }),
    ]),
    svg("polyline", { points: points.map(({ at, score }) => `${x(at)},${y(score)}`).join(" ") }),
    points.map(({ at, score }) =>
      svg("circle", { cx: x(at), cy: y(score), r: 3.5 }, svg("title", {}, `${timed ? `${at.toFixed(2)} s` : `frame ${at}`}: ${number(score)}`)),
    ),
    label(`${timed ? first.toFixed(2) : first} ${unit}`, { x: LEFT, y: HEIGHT - 8 }),
    label(`${timed ? last.toFixed(2) : last} ${unit}`, { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }),
  );
}

const spoken = (scores, timed) =>
  `The score ${timed ? "over time" : "of each frame"}, from ${number(Math.min(...scores))} to ${number(Math.max(...scores))}`;
