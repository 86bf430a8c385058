// The service, as this page asks it: same host, same folder, raw bytes of pictures in a form.

const STORED = "scoregate.key";

// sessionStorage is off in some browsers; the key then lasts as long as the page.
let held = "";
try {
  held = sessionStorage.getItem(STORED) ?? "";
} catch {}

export const key = () => held;

export function setKey(value) {
  held = value;
  try {
    if (value) sessionStorage.setItem(STORED, value);
    else sessionStorage.removeItem(STORED);
  } catch {}
}

/** What the service, or the way to it, says instead of an answer. */
export class Problem extends Error {
  constructor({ status = 0, title, detail, code = "", errors = [], requestId = "", retryAfter = null }) {
    super(detail);
    Object.assign(this, { status, title, detail, code, errors, requestId, retryAfter });
  }
}

/** The JSON of an answer, with how long it took.  Throws `Problem`, and `AbortError` where it was stopped. */
export async function call(path, { form, signal } = {}) {
  const headers = held ? { Authorization: `Bearer ${held}` } : {};
  const began = performance.now();
  let answer, text;
  try {
    answer = await fetch(path, { method: form ? "POST" : "GET", body: form, headers, signal, cache: "no-store" });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No answer", detail: "The service did not answer. Is it running?" });
  }
  const body = parsed(text);
  if (!answer.ok || body === null) throw problem(answer, body);
  return { body, text, took: performance.now() - began };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A refusal: problem+json, or the page of a proxy in between. */
function problem(answer, body) {
  const wait = Number.parseInt(answer.headers.get("Retry-After") ?? "", 10);
  return new Problem({
    status: answer.status,
    title: body?.title ?? `Status ${answer.status}`,
    detail: body?.detail ?? "The answer is not one of Scoregate's. Is a proxy in between?",
    code: body?.code,
    errors: body?.errors,
    requestId: answer.headers.get("X-Request-Id") ?? "",
    retryAfter: Number.isFinite(wait) ? wait : null,
  });
}
