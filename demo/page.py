"""
The HTML page of `make demo`: every picture with its scores and questions.

It is written here, and not by the writer of the client's pages (`scoregate.report.html`): `make demo` and the
test of the container image need the server's packages alone, and the client is in neither environment.
"""

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from demo.scoring import METRICS, Judged, Pair


def html(pairs: Sequence[Pair], verdict: str, caveat: str) -> str:
    """Return the whole page: no script, no other file, light or dark as the browser prefers."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Scoregate demo</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        "<header>\n<h1>Does the picture show what the prompt says?</h1>\n"
        f'<p class="verdict">{escape(verdict)}</p>\n<p class="quiet">{escape(caveat)}</p>\n</header>\n'
        f"<main>\n{''.join(map(section, pairs))}</main>\n</body>\n</html>\n"
    )


def section(pair: Pair) -> str:
    """Return a picture, with the results of its two prompts."""
    kind = mimetypes.guess_type(pair.file)[0] or "application/octet-stream"
    data = base64.b64encode(pair.image).decode()
    return (
        f'<section>\n<figure><div><img src="data:{kind};base64,{data}" alt="{escape(pair.right.prompt)}">'
        f"{boxes(pair.right.found)}</div><figcaption>{escape(pair.file)}</figcaption></figure>\n"
        f"{side(pair, pair.right, 'right')}{side(pair, pair.wrong, 'wrong')}</section>\n"
    )


def boxes(found: Mapping[str, Any]) -> str:
    """Return the boxes of the objects that GenEval's detector found; empty without a result."""
    if not found:
        return ""
    drawn = "".join(map(box, found["boxes"]))
    return f'<svg viewBox="0 0 {found["width"]} {found["height"]}">{drawn}</svg>'


def box(one: Mapping[str, Any]) -> str:
    """Return a box, with the object's name as its tooltip."""
    left, top, right, bottom = one["box"]
    name = " ".join(filter(None, [one["color"], one["class"]]))
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}">'
        f"<title>{escape(name)} {one['score']:.2f}</title></rect>"
    )


def side(pair: Pair, judged: Judged, which: str) -> str:
    """Return one prompt: its scores as bars, what GenEval misses, then the questions."""
    bars = "".join(bar(pair, judged, metric) for metric in METRICS if pair.requested(metric))
    reason = judged.found.get("reason")
    missed = f'<p class="quiet">GenEval: {escape(reason)}</p>\n' if reason else ""
    rows = "".join(map(question, judged.questions))
    questions = f"<h3>DSG asks</h3>\n<table>\n{rows}</table>\n" if rows else ""
    return (
        f'<article class="{which}">\n<h2><span class="quiet">{which}</span> {escape(judged.prompt)}</h2>\n'
        f"<dl>\n{bars}</dl>\n{missed}{questions}</article>\n"
    )


def bar(pair: Pair, judged: Judged, metric: str) -> str:
    """
    Return a score from 0 to 1 as a bar; the right prompt's is marked by whether it beat the wrong one's.
    """
    score = judged.scores.get(metric)
    if score is None:
        why = escape(judged.errors.get(metric, "no score"))
        return f'<dt>{METRICS[metric]}</dt><dd class="quiet">{why}</dd>\n'
    share = 100 * min(1.0, max(0.0, score))
    won = pair.distinguishes(metric)
    mark = f'<i class="{"yes" if won else "no"}">{"✓" if won else "✗"}</i>' if judged is pair.right else ""
    return (
        f'<dt>{METRICS[metric]}</dt><dd><span class="bar"><b style="width:{share:.1f}%"></b></span>'
        f"<span>{score:.3f} {mark}</span></dd>\n"
    )


def question(answered: Mapping[str, Any]) -> str:
    """
    Return a question's answer and P(yes); a question that a parent's "no" made irrelevant names that parent.
    """
    text, answer = escape(answered["text"]), escape(answered["answer"])
    if parents := ", ".join(map(str, answered["zeroed_by"])):
        text += f"<small>counts 0: zeroed by {parents}, answered no</small>"
    return (
        f'<tr><td class="quiet">{answered["id"]}</td><td>{text}</td><td class="{answer}">{answer}</td>'
        f'<td class="number">{answered["probability"]:.3f}</td></tr>\n'
    )


STYLE = """
:root { color-scheme: light dark; --paper: #f7f7f5; --card: #fff; --ink: #24262a; --quiet: #6b6f76;
  --line: #e4e4e0; --right: #2f7d6b; --wrong: #a3a6ab; --bad: #b3423a; }
@media (prefers-color-scheme: dark) { :root { --paper: #17181b; --card: #202226; --ink: #e6e6e3;
  --quiet: #9a9da3; --line: #33363b; --right: #5bb39d; --wrong: #6d7178; --bad: #e07a70; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2.5rem 1.25rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; font-weight: 600; }
h2 { margin: 0 0 .75rem; font-size: 1rem; font-weight: 600; }
h3 { margin: 1rem 0 .25rem; font-size: .8rem; font-weight: 500; color: var(--quiet); }
.verdict { margin: .5rem 0 0; font-size: 1.05rem; }
.quiet { color: var(--quiet); font-weight: 400; }
header p.quiet { margin: .25rem 0 2rem; }
section { display: grid; grid-template-columns: minmax(0, 15rem) repeat(2, minmax(0, 1fr)); gap: 1.75rem;
  margin-bottom: 1.25rem; padding: 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
figure { margin: 0; }
figure div { position: relative; width: fit-content; }
svg { position: absolute; inset: 0; width: 100%; height: 100%; }
rect { fill: transparent; stroke: #fff; stroke-width: 2; vector-effect: non-scaling-stroke;
  filter: drop-shadow(0 0 1px #000); }
article p { margin: .5rem 0 0; font-size: .85rem; white-space: pre-line; }
img { display: block; max-width: 100%; max-height: 15rem; border-radius: 6px; }
figcaption, small, table { font-size: .85rem; }
figcaption { margin-top: .4rem; color: var(--quiet); }
dl { display: grid; grid-template-columns: 5.5rem 1fr; gap: .3rem .75rem; margin: 0; }
dt { color: var(--quiet); }
dd { display: grid; grid-template-columns: 1fr 4.5rem; gap: .75rem; align-items: center; margin: 0;
  font-variant-numeric: tabular-nums; }
dd.quiet { display: block; }
.bar { height: .5rem; background: var(--line); border-radius: .25rem; overflow: hidden; }
.bar b { display: block; height: 100%; background: var(--wrong); }
.right .bar b { background: var(--right); }
i { font-style: normal; }
.yes { color: var(--right); }
i.no { color: var(--bad); }
td.no { color: var(--quiet); }
table { width: 100%; border-collapse: collapse; }
td { padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line); vertical-align: top; }
td:nth-child(2) { width: 100%; }
.number { padding-right: 0; font-variant-numeric: tabular-nums; }
small { display: block; color: var(--quiet); }
@media (max-width: 60rem) { section { grid-template-columns: 1fr; } }
"""
