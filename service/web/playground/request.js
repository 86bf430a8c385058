// What is chosen in the form, as a request.

import { byId } from "./dom.js";

const TIMEOUT_MS = 60_000;

export const mode = () => document.querySelector('input[name="mode"]:checked').value;

/** The metrics that are picked. */
export const chosen = () => [...byId("metrics").querySelectorAll("input:checked")].map(({ value }) => value);

/** The metrics that the request would name. */
export const asked = () => (mode() === "rank" ? [byId("metric").value, byId("cascade").value] : chosen());

/** How pictures are looked at, as requests write it. */
export const orient = () => (byId("upright").checked ? "exif" : "as_stored");

/** What would be sent now: the path, the JSON, and the files of each field; *usual*: how pictures are looked at anyway. */
export function wanted({ pictures, references, source }, usual) {
  const prompt = byId("prompt").value;
  const files = {
    pictures: named("picture", pictures.sent),
    references: named("reference", references.sent),
    source: named("source", source.sent),
  };
  const images = files.pictures.map(part);
  const common = {
    ...options(),
    ...clip(),
    ...(orient() === usual ? {} : { orient: orient() }),
    ...(byId("explain").checked ? { explain: true } : {}),
    timeout_ms: TIMEOUT_MS,
  };
  if (mode() === "rank") return { path: "rank", files, request: { prompt, images, ...rankedBy(), ...common } };
  return { path: "score", files, request: { ...itemsOf(prompt, images, files), metrics: chosen(), ...common } };
}

/** Whether all pictures are one item. */
export const together = () => byId("together").checked && !byId("together").closest("[hidden]");

/** The part of videos that is scored, as far as it is given. */
function clip() {
  if (byId("clip").closest("[hidden]")) return {};
  const given = ["start", "end", "fps"].filter((name) => byId(name).value);
  return Object.fromEntries(given.map((name) => [name, Number(byId(name).value)]));
}

const named = (name, list) => list.map(({ file }, index) => ({ part: `${name}${index + 1}`, file }));
const part = ({ part }) => ({ part });

/** The short form; items, where there are pictures beside an image or the images are frames of one. */
function itemsOf(prompt, images, { references, source }) {
  if (!references.length && !source.length) return together() ? { items: [{ prompt, image: images }] } : { prompt, images };
  const beside = {
    ...(references.length ? { references: references.map(part) } : {}),
    ...(source.length ? { source: part(source[0]) } : {}),
  };
  return { items: (together() ? [images] : images).map((image) => ({ prompt, image, ...beside })) };
}

function rankedBy() {
  const value = (id) => byId(id).value;
  return {
    metric: value("metric"),
    ...(value("top-k") ? { top_k: Number(value("top-k")) } : {}),
    ...(value("threshold") ? { threshold: Number(value("threshold")) } : {}),
    ...(value("cascade") ? { cascade: { metric: value("cascade"), keep: Number(value("keep")) } } : {}),
    on_error: "block",
  };
}

/** The options as they are written, with the metadata of GenEval's over those of its metric. */
function options() {
  const [all, metadata] = [written("options"), written("geneval")];
  if (metadata) return { options: { ...all, geneval: { ...all?.geneval, ...metadata } } };
  return all ? { options: all } : {};
}

/** The JSON that is written in a field; nothing where there is none.  Throws `SyntaxError`. */
function written(id) {
  const input = byId(id);
  const unused = !input.value.trim() || input.closest("[data-field]").hidden;
  return unused ? undefined : JSON.parse(input.value);
}

/** Whether something is written there that is no JSON object. */
export function broken(id) {
  try {
    const value = written(id);
    return value === null || Array.isArray(value) || !["object", "undefined"].includes(typeof value);
  } catch {
    return true;
  }
}
