// Pictures that are chosen: files from a dialog, a drop, the clipboard or the samples.

import { count, el } from "./dom.js";

export class Pictures {
  /** Those of one field; *changed* is called after every change with one sentence about it. */
  constructor(name, noun, most, changed) {
    this.field = document.querySelector(`[data-field="${name}"]`);
    this.noun = noun;
    this.most = most;
    this.changed = changed;
    this.list = [];
    this.tiles = this.field.querySelector(".pictures");
    this.input = this.field.querySelector('input[type="file"]');
    this.input.addEventListener("change", () => {
      this.add([...this.input.files]);
      this.input.value = ""; // so that the same file can be chosen again
    });
  }

  /** Those that are sent now: a hidden field has none. */
  get sent() {
    return this.field.hidden ? [] : this.list;
  }

  add(files) {
    if (this.most === 1 && files.length) this.#forget(); // the new one takes its place
    const taken = files.slice(0, Math.max(0, this.most - this.list.length));
    this.list.push(...taken.map((file) => ({ file, url: URL.createObjectURL(file) })));
    this.#draw();
    const left = files.length - taken.length;
    this.changed(
      `${count(taken.length, this.noun)} added, ${this.list.length} in all.` +
        (left ? ` ${left} left out: there may be at most ${this.most}.` : ""),
    );
  }

  replace(files) {
    this.#forget();
    this.add(files);
  }

  remove(index) {
    const [{ url }] = this.list.splice(index, 1);
    URL.revokeObjectURL(url);
    this.#draw();
    const next = this.tiles.querySelectorAll("button")[Math.min(index, this.list.length - 1)];
    (next ?? this.input).focus();
    this.changed(`${named(this.noun)} removed, ${this.list.length} left.`);
  }

  /** Say beside a picture what is wrong with it. */
  mark(index, message) {
    const tile = this.tiles.children[index];
    if (!tile) return null;
    tile.classList.add("wrong");
    tile.append(el("p", { class: "error" }, message));
    return tile;
  }

  unmark() {
    for (const tile of this.tiles.children) {
      tile.classList.remove("wrong");
      tile.querySelectorAll(".error").forEach((note) => note.remove());
    }
  }

  #forget() {
    for (const { url } of this.list) URL.revokeObjectURL(url);
    this.list = [];
  }

  #draw() {
    this.tiles.replaceChildren(...this.list.map(({ file, url }, index) => this.#tile(file, url, index)));
  }

  #tile(file, url, index) {
    return el(
      "li",
      { tabindex: "-1" },
      preview(url, `${named(this.noun)} ${index + 1}: ${file.name}`, file.type),
      el("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
      el(
        "button",
        { type: "button", "aria-label": `Remove ${this.noun} ${index + 1}, ${file.name}`, click: () => this.remove(index) },
        "×",
      ),
    );
  }
}

const named = (noun) => noun[0].toUpperCase() + noun.slice(1);

/** Take what is dropped or pasted anywhere: into the field that it is dropped on, else into the first one. */
export function takeFiles(places) {
  const add = (event, files) => {
    event.preventDefault();
    (places.find(({ field }) => field.contains(event.target)) ?? places[0]).add([...files]);
  };
  const over = (on) => document.body.classList.toggle("dragging", on);
  const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) add(event, event.clipboardData.files);
  });
  document.addEventListener("dragover", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  document.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    over(false);
    add(event, event.dataTransfer.files);
  });
}

const VIDEO = /^video\//;
const MOVES = /^video\/|^image\/(gif|webp)$/;

/** Whether a file may have several frames. */
export const moves = ({ type }) => MOVES.test(type);

/** A picture or a video, or its description where the browser cannot show it. */
export function preview(url, description, type = "") {
  const image = VIDEO.test(type)
    ? el("video", { src: url, "aria-label": description, muted: true, playsinline: true, preload: "auto" })
    : el("img", { src: url, alt: description });
  image.addEventListener("error", () => image.replaceWith(el("span", { class: "unseen" }, description)));
  return image;
}
