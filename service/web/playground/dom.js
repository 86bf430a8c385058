// Elements are made here, and text only ever becomes text.

/** An element with attributes; what is null, undefined or false is left out. */
export const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** The same of a drawing. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** A number as people compare it: three decimals, and a sign that is no hyphen. */
export function number(value) {
  if (typeof value !== "number") return "–";
  if (value > 0 && value < 0.0005) return "<0.001";
  const text = Math.abs(value).toFixed(3);
  return value < 0 ? `−${text}` : text;
}

export const milliseconds = (value) =>
  value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

export const count = (many, noun, nouns = `${noun}s`) => `${many} ${many === 1 ? noun : nouns}`;

/** A bar over a range, whose value stands beside it as text. */
export function bar(value, [least, most] = [0, 1], kind = "") {
  const node = el("span", { class: `bar ${kind}`, "aria-hidden": "true" });
  if (!(value >= least && value <= most && Number.isFinite(most - least))) return node;
  const place = (at) => (at - least) / (most - least);
  const zero = place(Math.min(most, Math.max(least, 0)));
  const end = place(value);
  const fill = el("b");
  fill.style.setProperty("--from", Math.min(zero, end));
  fill.style.setProperty("--share", Math.abs(end - zero));
  node.append(fill);
  if (zero > 0 && zero < 1) {
    const tick = el("i");
    tick.style.setProperty("--from", zero);
    node.append(tick);
  }
  return node;
}
