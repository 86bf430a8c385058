// What went wrong, beside what it is about: a problem's pointers lead to pictures and fields.

import { byId, el } from "./dom.js";

const FRAME = /^\/items\/0\/image\/(\d+)/;
const PICTURE = /^\/(?:items|images)\/(\d+)(?:\/image|$)/;
const BESIDE = /^\/items\/\d+\/(references|source)(?:\/(\d+))?/;
const REPEATED = /^\/items\/[1-9]\d*\/(?!image)/; // all items here are alike but for their image
const FIELDS = [
  [/^\/prompt|^\/items\/\d+\/prompt/, "prompt"],
  [/^\/metrics/, "metrics"],
  [/^\/(metric|top_k|threshold|cascade|on_error|on_deadline)/, "rank"],
  [/^\/options\/geneval(\/|$)/, "geneval"],
  [/^\/(items\/\d+\/)?options/, "options"],
  [/^\/(start|end|fps)$/, "frames"],
  [/^\/(items|images)$/, "pictures"],
];

let ticking = 0;

/** Remove all that was said. */
export function clear(places) {
  clearInterval(ticking);
  byId("problem").replaceChildren();
  Object.values(places).forEach((place) => place.unmark());
  for (const field of document.querySelectorAll("[data-field]")) {
    const note = field.querySelector(":scope > .error");
    note.hidden = true;
    note.replaceChildren();
    field.classList.remove("wrong");
    field.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
  }
}

/** Say beside a field what is wrong with it; what can be focused there comes back. */
export function mark(name, message) {
  const field = document.querySelector(`[data-field="${name}"]`);
  const note = field.querySelector(":scope > .error");
  const input = field.querySelector("[aria-describedby]") ?? field.querySelector("select, input");
  field.classList.add("wrong");
  if (field.tagName === "DETAILS") field.open = true;
  note.hidden = false;
  note.append(note.hasChildNodes() ? el("br") : "", message);
  input?.setAttribute("aria-invalid", "true");
  return input;
}

/** Show a problem: its title and text, marks where its pointers lead, and a way on. */
export function show(problem, places, retry) {
  const errors = problem.errors.filter(({ pointer }) => !REPEATED.test(pointer));
  const marked = errors.map((error) => ({ error, ...placed(error, places) }));
  const list = marked.map(({ error, name, target }) =>
    el(
      "li",
      {},
      target ? el("button", { type: "button", class: "link", click: () => target.focus() }, name) : el("code", {}, name),
      ` ${error.detail}`,
    ),
  );
  byId("problem").replaceChildren(
    el(
      "div",
      { class: "card problem" },
      el("h3", {}, problem.title),
      list.length ? el("ul", {}, list) : el("p", {}, problem.detail),
      problem.requestId && el("p", { class: "quiet" }, "request ", el("code", {}, problem.requestId)),
      retry && again(problem, retry),
    ),
  );
  marked.find(({ target }) => target)?.target.focus();
}

/** Where an error's pointer leads on this page. */
function placed({ pointer, detail }, places) {
  const picture = FRAME.exec(pointer) ?? PICTURE.exec(pointer);
  if (picture) {
    const index = Number(picture[1]);
    return { name: `Picture ${index + 1}:`, target: places.pictures.mark(index, detail) };
  }
  const [, name, index] = BESIDE.exec(pointer) ?? [];
  if (name) return { name: `${pointer}:`, target: index ? places[name].mark(index, detail) : mark(name, detail) };
  const field = FIELDS.find(([pattern, name]) => pattern.test(pointer) && (name !== "geneval" || byId("geneval").value.trim()));
  return field ? { name: `${pointer}:`, target: mark(field[1], within(pointer) + detail) } : { name: pointer || "body", target: null };
}

/** Where in a field's JSON an error is. */
const within = (pointer) => {
  const inner = pointer.split("/options/")[1];
  return inner ? `${inner.replaceAll("/", ".")}: ` : "";
};

/** A button that can be pressed when the time is over that the service asks for. */
function again({ retryAfter, status }, retry) {
  if (status !== 0 && retryAfter === null && status < 500) return null;
  let left = retryAfter ?? 0;
  const button = el("button", { type: "button", class: "again", click: () => left === 0 && retry() });
  const tell = () => {
    button.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
    if (left > 0) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  };
  const tick = () => {
    left -= 1;
    if (left === 0) clearInterval(ticking);
    tell();
  };
  tell();
  if (left > 0) ticking = setInterval(tick, 1000);
  return el("p", { "aria-live": "off" }, button);
}
