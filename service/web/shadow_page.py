"""The comparison of a model and its shadow as one HTML page, without scripts."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from itertools import pairwise

from service.scoring.shadows.comparison import Comparison, Figures, Histogram

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
td, th { padding: .15rem .8rem .15rem 0; text-align: right }
th:first-child, td:first-child { text-align: left } 
svg { width: 100%; height: auto } .served { color: #1a6fb5 } .shadow { color: #c2410c }
"""
DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; frame-ancestors 'none'"

WIDTH, HEIGHT = 640, 180  # of a drawing, without the line of numbers below


def page(
    name: str,
    served: str,
    shadow: str,
    share: float,
    outdated: bool,
    counts: Mapping[str, int],
    metrics: Mapping[str, Comparison],
    **others: object,
) -> str:
    """Return the page, for the fields of the JSON answer."""
    results = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    stopped = "<p>One of the models was replaced: no more pairs are added.</p>" if outdated else ""
    sections = "".join(section(metric, compared) for metric, compared in metrics.items())
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Shadow of {escape(name)}</title>
<style>{STYLE}</style></head><body><h1>Shadow of {escape(name)}</h1>
<p><span class="served">served: {escape(served)}</span>, <span class="shadow">shadow: {escape(shadow)}</span>,
share {share:g}; scores of the shadow: {results}</p>{stopped}{sections}</body></html>
"""


def section(metric: str, compared: Comparison) -> str:
    """Return the part of one metric."""
    figures = compared.figures
    shown = f"<p>{escape(compared.caution)}</p>" if figures is None else drawn(figures)
    return f"<h2>{escape(metric)}</h2><p>{compared.pairs} pairs</p>{shown}"


def drawn(figures: Figures) -> str:
    """Return the drawing and the tables of one metric."""
    rows = [
        (title, f"{each.mean:.4g}", f"{each.sd:.4g}", *(f"{value:.4g}" for value in each.quantiles.values()))
        for title, each in (
            ("served", figures.served),
            ("shadow", figures.shadow),
            ("difference", figures.difference),
        )
    ]
    limits = [
        (
            f"{each.served:.6g}",
            "" if each.shadow is None else f"{each.shadow:.6g}",
            f"{each.served_rate:.1%}",
            "" if each.shadow_rate is None else f"{each.shadow_rate:.1%}",
            each.caution,
        )
        for each in figures.thresholds
    ]
    correlations = (("Spearman", figures.spearman), ("Pearson", figures.pearson))
    named = ", ".join(
        f"{method} {'is undefined' if found is None else f'{found:.3f}'}" for method, found in correlations
    )
    return "".join(
        (
            outlines(figures.histogram),
            f"<p>Correlation: {named}</p>",
            table(("", "mean", "sd", *figures.served.quantiles), rows),
            "<p>Thresholds that keep the pass rate:</p>",
            table(("served", "shadow", "pass now", "pass then", ""), limits),
        )
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts."""
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def outlines(histogram: Histogram) -> str:
    """Return both histograms as steps over one axis."""
    least, most = histogram.edges[0], histogram.edges[-1]
    highest = max(*histogram.served, *histogram.shadow)
    across = [WIDTH * (edge - least) / (most - least) for edge in histogram.edges]

    def steps(counts: Iterable[int]) -> str:
        heights = (HEIGHT * (1 - count / highest) for count in counts)
        points = (
            f"{left:.1f},{y:.1f} {right:.1f},{y:.1f}"
            for (left, right), y in zip(pairwise(across), heights, strict=True)
        )
        return f"0,{HEIGHT} {' '.join(points)} {WIDTH},{HEIGHT}"

    lines = "".join(
        f'<polyline class="{name}" points="{steps(counts)}" fill="none" stroke="currentColor"/>'
        for name, counts in (("served", histogram.served), ("shadow", histogram.shadow))
    )
    return (
        f'<svg viewBox="-4 -4 {WIDTH + 8} {HEIGHT + 28}" role="img" aria-label="scores of both models">'
        f"{lines}"
        f'<text x="0" y="{HEIGHT + 18}" font-size="13">{least:.4g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 18}" font-size="13" text-anchor="end">{most:.4g}</text></svg>'
    )
