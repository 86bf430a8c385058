// The request as code for a shell and for Python.  A key is never in it.

import { key } from "./api.js";

/** *value* as one word of a POSIX shell. */
const quoted = (value) => `'${value.replaceAll("'", `'\\''`)}'`;

/** *value* as a Python literal. */
function literal(value) {
  if (value === true || value === false) return value ? "True" : "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

export function curl({ path, request, files }) {
  const lines = [
    `curl -sS ${quoted(new URL(path, document.baseURI).href)}`,
    key() && `-H "Authorization: Bearer $SCOREGATE_API_KEY"`,
    `-F ${quoted(`request=${JSON.stringify(request)};type=application/json`)}`,
    ...Object.values(files).flat().map(({ part, file }) => `-F ${quoted(`${part}=@"${file.name.replaceAll(/["\\]/g, "\\$&")}"`)}`),
  ];
  return lines.filter(Boolean).join(" \\\n  ");
}

export function python({ path, request, files }) {
  const base = new URL(".", document.baseURI).href.replace(/\/$/, "");
  const body = path === "rank" ? ranked(request, files) : scored(request, files);
  return [
    "from pathlib import Path",
    "",
    "import scoregate",
    "",
    ...(key() ? ["# The client reads the key from SCOREGATE_API_KEY."] : []),
    `with scoregate.Client(${literal(base)}) as client:`,
    ...body.map((line) => `    ${line}`),
  ].join("\n");
}

// The fields of a request that are one argument of the client, by the class of its value.
const CLASSES = {
  Accept: ["accept", ["top_k", "threshold", "on_error"]],
  Cascade: ["cascade", ["metric", "keep"]],
  TimeSpan: ["span", ["start", "end", "fps"]],
};

/** The fields of *request* that a class has, as one argument; none if they are not there. */
function argument(kind, request) {
  const [name, fields] = CLASSES[kind];
  const given = fields.filter((field) => field in request).map((field) => `${field}=${literal(request[field])}`);
  return given.length > 0 ? [`${name}=scoregate.${kind}(${given.join(", ")})`] : [];
}

const paths = (list) => list.map(({ file }) => `Path(${literal(file.name)})`);

function scored({ prompt, items, metrics, options, explain, ...request }, { pictures, references, source }) {
  const more = [`metrics=${literal(metrics)}`, options && `options=${literal(options)}`, explain && "explain=True"];
  const beside = [
    references.length > 0 && ["references", `[${paths(references).join(", ")}]`],
    source.length > 0 && ["source", paths(source)[0]],
  ].filter(Boolean);
  const own = ["orient" in request && `orient=${literal(request.orient)}`, ...argument("TimeSpan", request)].filter(Boolean);
  const item = ["prompt=prompt", "image=picture", ...beside.map(([name]) => `${name}=${name}`), ...own].join(", ");
  const together = Array.isArray(items?.[0].image);
  return [
    `prompt = ${literal(prompt ?? items[0].prompt)}`,
    `pictures = [${together ? "scoregate.Frames([" : ""}${paths(pictures).join(", ")}${together ? "])" : ""}]`,
    ...beside.map(([name, value]) => `${name} = ${value}`),
    `items = [scoregate.Item(${item}) for picture in pictures]`,
    `report = client.score_items(items, ${more.filter(Boolean).join(", ")})`,
    "for picture, result in zip(pictures, report, strict=True):",
    "    print(picture, dict(result.scores), dict(result.errors))",
  ];
}

function ranked({ prompt, images, cascade, ...wanted }, { pictures }) {
  const plain = Object.entries(wanted).filter(([name]) => ["metric", "orient", "options", "priority"].includes(name));
  const more = [
    ...plain.map(([name, value]) => `${name}=${literal(value)}`),
    ...argument("Accept", wanted),
    ...argument("Cascade", cascade ?? {}),
    ...argument("TimeSpan", wanted),
  ];
  return [
    `pictures = [${paths(pictures).join(", ")}]`,
    "ranking = client.rank(",
    `    ${literal(prompt)},`,
    "    pictures,",
    ...more.map((one) => `    ${one},`),
    ")",
    "for place in ranking:",
    "    print(pictures[place.index], place.score, place.accepted, place.decided_by)",
  ];
}
