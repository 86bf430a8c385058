// The objects that a detector found, drawn over the picture, and the same as a list.

import { count, el, number } from "./dom.js";
import { preview } from "./pictures.js";

const DRAWN = 20; // boxes of one picture; the list below it has all
const KINDS = 6; // colours of classes, in turn, as in style.css
const NEAR = 0.07; // of a side: labels that begin closer to each other stand in rows

let on = true;

/** Whether these details have boxes that can be drawn. */
export const drawable = ({ boxes, width, height }) =>
  width > 0 && height > 0 && Array.isArray(boxes) && boxes.every((each) => each?.box?.length === 4 && each.box.every(Number.isFinite));

/** The switch that hides the boxes of all pictures, and shows them again. */
export function toggle() {
  const turn = ({ target }) => {
    on = target.checked;
    document.querySelectorAll(".box").forEach((node) => (node.hidden = !on));
  };
  return el("label", { class: "check" }, el("input", { type: "checkbox", id: "boxes", checked: on, change: turn }), "Show the boxes of objects");
}

/** A picture with its boxes, and its objects in words. */
export function boxes(url, { boxes: found, width, height, include = [], exclude = [] }) {
  const wanted = new Set([...include, ...exclude].map((clause) => clause.class));
  const kinds = [...new Set(found.map((each) => each.class))];
  const objects = found.map((each, index) => ({
    text: `${index + 1} ${[each.color, each.class].filter(Boolean).join(" ")} ${number(each.score)}`,
    box: each.box,
    kind: kinds.indexOf(each.class) % KINDS,
    wanted: !wanted.size || wanted.has(each.class),
  }));
  const drawn = [...objects.filter(({ wanted }) => wanted), ...objects.filter(({ wanted }) => !wanted)].slice(0, DRAWN);
  const corners = drawn.map(({ box: [left, top] }) => [left / width, top / height]);
  const place = el(
    "div",
    { class: "boxed" },
    preview(url, `The picture, with ${count(drawn.length, "box", "boxes")}`),
    drawn.map((object, index) => drawnBox(object, width, height, row(corners, index))).reverse(), // what matters lies on top
  );
  place.style.setProperty("--width", width);
  place.style.setProperty("--height", height);
  return [place, list(objects)];
}

/** How many labels begin where this one does. */
const row = (corners, index) =>
  corners.slice(0, index).filter((each) => each.every((at, axis) => Math.abs(at - corners[index][axis]) < NEAR)).length;

function drawnBox({ text, box: [left, top, right, bottom], kind, wanted }, width, height, row) {
  const label = el("span", {}, text);
  const node = el("div", { class: `box kind-${kind} ${wanted ? "" : "aside"} ${left > width / 2 ? "to-left" : ""}`, hidden: !on, "aria-hidden": "true" }, label);
  const share = { left: left / width, top: top / height, width: (right - left) / width, height: (bottom - top) / height };
  for (const [name, value] of Object.entries(share)) node.style.setProperty(name, `${100 * value}%`);
  label.style.setProperty("--row", row);
  return node;
}

function list(objects) {
  if (!objects.length) return el("p", { class: "quiet" }, "No objects were found.");
  const chosen = objects.some(({ wanted }) => !wanted);
  return el(
    "details",
    { class: "rest" },
    el("summary", {}, count(objects.length, "object")),
    el(
      "ol",
      { class: "objects" },
      objects.map(({ text, box, wanted }) =>
        el("li", {}, text, el("small", {}, ` ${point(box[0], box[1])} to ${point(box[2], box[3])}`, chosen && wanted && ", asked for")),
      ),
    ),
  );
}

const point = (x, y) => `(${Math.round(x)}, ${Math.round(y)})`;

/** Whether the checks passed, and which did not. */
export const verdict = ({ correct, reason }) =>
  el(
    "p",
    { class: `verdict ${correct ? "yes" : "no"}` },
    el("strong", {}, correct ? "Correct" : "Not correct"),
    typeof reason === "string" && reason && reason.split("\n").map((line) => el("span", {}, line)),
  );
