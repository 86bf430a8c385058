// What is chosen in the form, as a request.

import { byId } from "./dom.js";

const TIMEOUT_MS = 60_000;

export const mode = () => document.querySelector('input[name="mode"]:checked').value;

/** The metrics that are picked. */
export const chosen = () => [...byId("metrics").querySelectorAll("input:checked")].map(({ value }) => value);

/** What would be sent now: the path, the JSON and the files. */
export function wanted(pictures) {
  const prompt = byId("prompt").value;
  const files = pictures.map(({ file }) => file);
  const parts = files.map((_, index) => ({ part: `picture${index + 1}` }));
  const options = byId("options").value.trim() ? { options: JSON.parse(byId("options").value) } : {};
  if (mode() === "rank") return { path: "rank", files, request: { prompt, images: parts, ...rankedBy(), ...options } };
  const request = {
    prompt,
    images: parts,
    metrics: chosen(),
    ...options,
    ...(byId("explain").checked ? { explain: true } : {}),
    timeout_ms: TIMEOUT_MS,
  };
  return { path: "score", files, request };
}

function rankedBy() {
  const value = (id) => byId(id).value;
  return {
    metric: value("metric"),
    ...(value("top-k") ? { top_k: Number(value("top-k")) } : {}),
    ...(value("threshold") ? { threshold: Number(value("threshold")) } : {}),
    ...(value("cascade") ? { cascade: { metric: value("cascade"), keep: Number(value("keep")) } } : {}),
    on_error: "block",
    timeout_ms: TIMEOUT_MS,
  };
}

/** Whether options are there that are no JSON object. */
export function broken() {
  const text = byId("options").value;
  if (!text.trim()) return false;
  try {
    const value = JSON.parse(text);
    return value === null || typeof value !== "object" || Array.isArray(value);
  } catch {
    return true;
  }
}
