"""The HTML page of `make demo`: every picture with its scores and questions."""

from collections.abc import Mapping, Sequence
from typing import Any

from demo.scoring import METRICS, Judged, Pair
from scoregate.report.html import data_uri, document, image, safe


def html(pairs: Sequence[Pair], verdict: str, caveat: str) -> str:
    """Return the whole page: no script, no other file, light or dark as the browser prefers."""
    head = "<header>\n<h1>Does the picture show what the prompt says?</h1>\n"
    head += f'<p class="verdict">{safe(verdict)}</p>\n<p class="quiet">{safe(caveat)}</p>\n</header>\n'
    return document("Scoregate demo", f"{head}<main>\n{''.join(map(section, pairs))}</main>\n", STYLE)


def section(pair: Pair) -> str:
    """Return a picture, with the results of its two prompts."""
    return (
        f"<section>\n<figure><div>{image(data_uri(pair.image), pair.right.prompt)}"
        f"{boxes(pair.right.found)}</div><figcaption>{safe(pair.file)}</figcaption></figure>\n"
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
        f"<title>{safe(name)} {one['score']:.2f}</title></rect>"
    )


def side(pair: Pair, judged: Judged, which: str) -> str:
    """Return one prompt: its scores as bars, what GenEval misses, then the questions."""
    bars = "".join(bar(pair, judged, metric) for metric in METRICS if pair.requested(metric))
    reason = judged.found.get("reason")
    lines = "\n".join(map(safe, (reason or "").splitlines()))
    missed = f'<p class="quiet">GenEval: {lines}</p>\n' if reason else ""
    rows = "".join(map(question, judged.questions))
    questions = f"<h3>DSG asks</h3>\n<table>\n{rows}</table>\n" if rows else ""
    return (
        f'<article class="{which}">\n<h2><span class="quiet">{which}</span> {safe(judged.prompt)}</h2>\n'
        f"<dl>\n{bars}</dl>\n{missed}{questions}</article>\n"
    )


def bar(pair: Pair, judged: Judged, metric: str) -> str:
    """
    Return a score from 0 to 1 as a bar; the right prompt's is marked by whether it beat the wrong one's.
    """
    score = judged.scores.get(metric)
    if score is None:
        why = safe(judged.errors.get(metric, "no score"))
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
    text, answer = safe(answered["text"]), safe(answered["answer"])
    if parents := ", ".join(map(str, answered["zeroed_by"])):
        text += f"<small>counts 0: zeroed by {parents}, answered no</small>"
    return (
        f'<tr><td class="quiet">{answered["id"]}</td><td>{text}</td><td class="{answer}">{answer}</td>'
        f'<td class="number">{answered["probability"]:.3f}</td></tr>\n'
    )


STYLE = """
body { max-width: 76rem; padding-top: 2.5rem; }
h1 { margin: 0; }
h2 { font-size: 1rem; }
h3 { margin-bottom: .25rem; font-size: .8rem; font-weight: 500; color: var(--quiet); }
.verdict { margin: .5rem 0 0; font-size: 1.05rem; }
h2 .quiet, td.quiet, dd.quiet { font-size: inherit; font-weight: 400; }
header p.quiet { margin: .25rem 0 2rem; }
section { display: grid; grid-template-columns: minmax(0, 15rem) repeat(2, minmax(0, 1fr)); gap: 1.75rem; }
figure { padding: 0; border: 0; background: none; }
figure div { position: relative; width: fit-content; }
svg { position: absolute; inset: 0; width: 100%; height: 100%; }
rect { fill: transparent; stroke: #fff; stroke-width: 2; vector-effect: non-scaling-stroke;
  filter: drop-shadow(0 0 1px #000); }
article p { white-space: pre-line; }
img { max-height: 15rem; border-radius: 6px; }
figcaption, small, table { font-size: .85rem; }
figcaption { margin-top: .4rem; color: var(--quiet); }
dl { grid-template-columns: 5.5rem 1fr; gap: .3rem .75rem; margin: 0; }
dd { display: grid; grid-template-columns: 1fr 4.5rem; gap: .75rem; align-items: center; }
dd.quiet { display: block; margin: 0; }
.bar { height: .5rem; background: var(--track); border-radius: .25rem; overflow: hidden; }
.bar b { display: block; height: 100%; background: var(--quiet); opacity: .6; }
.right .bar b { background: var(--accent); opacity: 1; }
i { font-style: normal; }
.yes { color: var(--accent); }
i.no { color: var(--bad); }
td.no { color: var(--quiet); }
table { width: 100%; }
td { padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line); border-bottom: 0;
  vertical-align: top; }
td:nth-child(2) { width: 100%; }
td:not(:nth-child(2)) { overflow-wrap: normal; }
.number { padding-right: 0; }
small { display: block; }
@media (max-width: 60rem) { section { grid-template-columns: 1fr; } }
"""
