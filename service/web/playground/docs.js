// `/openapi.json` for people: endpoints with what they take and answer, then the schemas.

import { call } from "./api.js";
import { byId, el } from "./dom.js";

const METHODS = ["get", "post", "put", "delete", "patch"];
const LIMITS = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"];

async function describe() {
  let document;
  try {
    ({ body: document } = await call("../openapi.json"));
  } catch (problem) {
    const more = problem.status === 401 ? " Give the key on the playground's page first, in this tab." : "";
    byId("problem").replaceChildren(el("p", { class: "card error" }, problem.message, more));
    return;
  }
  byId("version").textContent = `Version ${document.info.version}`;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ path, method, ...methods[method] })),
  );
  const schemas = Object.entries(document.components?.schemas ?? {}).sort(([one], [other]) => one.localeCompare(other));
  byId("operations").replaceChildren(...operations.map(operation));
  byId("schemas").replaceChildren(el("h2", {}, "Schemas"), ...schemas.map(schema));
  byId("contents").replaceChildren(
    el("h2", {}, "Endpoints"),
    ...operations.map((one) => el("a", { href: `#${place(one)}` }, `${one.method.toUpperCase()} ${one.path}`)),
    el("h2", {}, "Schemas"),
    ...schemas.map(([name]) => el("a", { href: `#${name}` }, name)),
  );
  if (location.hash) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

const place = ({ method, path }) => method + path.replaceAll(/\W+/g, "-");

function operation(one) {
  const media = Object.entries(one.requestBody?.content ?? {});
  const parameters = (one.parameters ?? []).map((each) => [
    el("code", {}, each.name), each.in, type(each.schema), each.description ?? "",
  ]);
  const answers = Object.entries(one.responses).map(([status, answer]) => [
    status, Object.values(answer.content ?? {}).map(({ schema }) => type(schema)), answer.description ?? "",
  ]);
  return el(
    "article",
    { class: "card", id: place(one) },
    el("h3", {}, el("b", {}, one.method.toUpperCase()), one.path),
    el("p", { class: "said" }, one.description ?? one.summary ?? ""),
    media.length > 0 && [el("h4", {}, "Body"), table(["type", "schema"], media.map(([kind, { schema }]) => [el("code", {}, kind), type(schema)]))],
    parameters.length > 0 && [el("h4", {}, "Parameters"), table(["name", "in", "type", ""], parameters)],
    el("h4", {}, "Answers"),
    table(["status", "schema", "codes"], answers),
  );
}

function schema([name, { description, properties = {}, required = [], ...rest }]) {
  const rows = Object.entries(properties).map(([field, one]) => [
    [el("code", {}, field), required.includes(field) && el("small", {}, " required")],
    type(one),
    "default" in one ? el("code", {}, JSON.stringify(one.default)) : "",
    [one.description, limits(one)].filter(Boolean).join(" "),
  ]);
  return el(
    "article",
    { class: "card", id: name },
    el("h3", {}, name),
    description && el("p", { class: "said" }, description),
    rows.length ? table(["field", "type", "default", ""], rows) : el("p", { class: "said" }, type(rest)),
  );
}

const limits = (one) =>
  LIMITS.filter((name) => name in one).map((name) => `${name} ${one[name]}`).join(", ");

/** A schema in few words, with links to those that it names. */
function type(one) {
  if (!one) return "";
  if (one.$ref) {
    const name = one.$ref.split("/").at(-1);
    return el("a", { href: `#${name}` }, name);
  }
  const any = one.anyOf ?? one.oneOf ?? one.allOf;
  if (any && !one.properties) return any.map((each, index) => [index > 0 && " or ", type(each)]).flat();
  if (one.const !== undefined) return el("code", {}, JSON.stringify(one.const));
  if (one.enum) return one.enum.map((value, index) => [index > 0 && " ", el("code", {}, JSON.stringify(value))]).flat();
  if (one.type === "array") return ["list of ", type(one.items)].flat();
  if (one.type === "object" && one.properties?.request) return ["form with ", type(one.properties.request), " and file parts"].flat();
  if (one.type === "object" && typeof one.additionalProperties === "object") return ["object of ", type(one.additionalProperties)].flat();
  return one.type ?? "anything";
}

const table = (heads, rows) =>
  el(
    "div",
    { class: "table", tabindex: "0", role: "group" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, heads.map((head) => (head ? el("th", { scope: "col" }, head) : el("td"))))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))),
    ),
  );

describe();
