// The pictures that are chosen: files from a dialog, a drop, the clipboard or the samples.

import { byId, count, el } from "./dom.js";

export class Pictures {
  /** *changed* is called after every change with one sentence about it. */
  constructor(changed) {
    this.list = [];
    this.changed = changed;
    this.most = 128;
    const input = byId("files");
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = ""; // so that the same file can be chosen again
    });
    document.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      this.add(files);
    });
    this.#dropped();
  }

  add(files) {
    const taken = files.slice(0, Math.max(0, this.most - this.list.length));
    this.list.push(...taken.map((file) => ({ file, url: URL.createObjectURL(file) })));
    this.#draw();
    const left = files.length - taken.length;
    this.changed(
      `${count(taken.length, "picture")} added, ${this.list.length} in all.` +
        (left ? ` ${left} left out: a request takes at most ${this.most}.` : ""),
    );
  }

  replace(files) {
    for (const { url } of this.list) URL.revokeObjectURL(url);
    this.list = [];
    this.add(files);
  }

  remove(index) {
    const [{ url }] = this.list.splice(index, 1);
    URL.revokeObjectURL(url);
    this.#draw();
    const next = byId("pictures").querySelectorAll("button")[Math.min(index, this.list.length - 1)];
    (next ?? byId("files")).focus();
    this.changed(`Picture removed, ${this.list.length} left.`);
  }

  /** Say beside a picture what is wrong with it. */
  mark(index, message) {
    const tile = byId("pictures").children[index];
    if (!tile) return null;
    tile.classList.add("wrong");
    tile.append(el("p", { class: "error" }, message));
    return tile;
  }

  unmark() {
    for (const tile of byId("pictures").children) {
      tile.classList.remove("wrong");
      tile.querySelectorAll(".error").forEach((note) => note.remove());
    }
  }

  #draw() {
    byId("pictures").replaceChildren(...this.list.map(({ file, url }, index) => this.#tile(file, url, index)));
    byId("samples").hidden = this.list.length > 0;
  }

  #tile(file, url, index) {
    return el(
      "li",
      { tabindex: "-1" },
      preview(url, `Picture ${index + 1}: ${file.name}`),
      el("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
      el(
        "button",
        { type: "button", "aria-label": `Remove picture ${index + 1}, ${file.name}`, click: () => this.remove(index) },
        "×",
      ),
    );
  }

  #dropped() {
    const over = (on) => document.body.classList.toggle("dragging", on);
    const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      over(true);
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
    document.addEventListener("drop", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      over(false);
      this.add([...event.dataTransfer.files]);
    });
  }
}

/** A picture, or its description where the browser cannot show it. */
export function preview(url, description) {
  const image = el("img", { src: url, alt: description });
  image.addEventListener("error", () => image.replaceWith(el("span", { class: "unseen" }, description)));
  return image;
}
