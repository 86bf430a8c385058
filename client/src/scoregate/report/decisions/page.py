"""The report on logs of decisions as a page and as text."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from scoregate.decisions.logs import DECISIONS
from scoregate.formats import NO_VALUE, cell, printed
from scoregate.records import check_json, check_page
from scoregate.report.decisions.content import content_of
from scoregate.report.decisions.settings import ReportSettings
from scoregate.report.html import facts, in_sections, note, safe, table, write_html
from scoregate.report.parts import MissingPartError, part, text
from scoregate.report.rows import EMPTY_CELL

ReportContent = Mapping[str, Any]
ReportRows = Sequence[Mapping[str, Any]]

ON_PAGE_ALONE = ("drift days", "nearest")
COUNTS = ("rows", *DECISIONS, "without_score_share", "unreadable_share")
LATENCIES = ("p50_ms", "p95_ms", "p99_ms")
AUDITS = ("audited", "audits_complete", "audits_failed", "audits_dropped", "audits_dropped_share")
WIDE, HIGH, LEFT, FOOT = 640, 160, 40, 140  # sizes of a plot in pixels

RATES = (
    "Of the bad pictures the share that was accepted, and of the good ones the share that was"
    " rejected. Drawn rows of a decision that have a label stand for all of them: each is weighted"
    " by the inverse of its probability, and of the share of drawn rows that have a label (Hájek)."
    " The 95 % interval is from drawing the labelled rows of each decision again."
)
OTHERS = (
    "Rows with a label that were not drawn by <code>decisions sample</code> are counted, and in no"
    " rate: they are no random sample."
)
DROPPED_NOTE = (
    "Audited rows stand for all rows if few are lost, else they may be biased. Dropped ones did not fit"
    " into the memory, ended with the service, or still run."
)
DRIFT = (
    "Scores after the reference against it. PSI compares the shares of bins that end at the deciles"
    " of the reference; above 0.1 many call it a shift, above 0.25 a large one. With few scores it"
    " is above 0 by chance. p is of the test of Kolmogorov and Smirnov. A metric that some decisions"
    " skipped is shown by its complete audits. A new model is a new id, and begins anew."
)
NEAREST_NOTE = (
    "The margin is the least difference in a comparison that decided; it is negative for rejected"
    " pictures. Margins of different metrics are not comparable. The log has no pictures: find them"
    " by their digest or your id."
)


def report(settings: ReportSettings) -> dict[str, Any]:
    """
    Return the figures of logs; write them into the file `out`, and the page into `html`, if these are named.

    Raises:
        InputError: a log is not valid, or a file cannot have JSON or a page.
        OSError: a file cannot be written.
    """
    if settings.html:
        check_page(settings.html)
    if settings.out:
        check_json(settings.out)
    content = content_of(settings)
    if settings.out:
        settings.out.write_text(f"{json.dumps(content, allow_nan=False)}\n", "utf-8")
    if settings.html:
        write_html(settings.html, page(content))
    return content


def as_text(content: ReportContent) -> str:
    """Return the figures as text, without those that the page alone has."""
    return printed(
        {name: each for name, each in content.items() if each != [] and name not in ON_PAGE_ALONE},
        "text",
        None,
    )


def page(content: ReportContent) -> str:
    """Return the page's HTML."""
    parts: Mapping[str, tuple[str, Callable[[], str]]] = {
        "decisions": ("Decisions", lambda: decisions(content)),
        "rates": ("Wrong decisions", lambda: rates(content)),
        "time": ("Time", lambda: times(content)),
        "drift": ("Drift", lambda: drift(content)),
        "models": ("Models", lambda: models(content)),
        "nearest": ("Nearest to another decision", lambda: nearest(content)),
    }
    head = {"decisions": content["rows"], "from": content["from"] or "", "to": content["to"] or ""}
    drawn = {name: (title, part(body)) for name, (title, body) in parts.items()}
    return in_sections("Decisions", facts(head, "facts"), drawn, STYLE)


def filled(rows: ReportRows, empty: str) -> ReportRows:
    """Return rows.  Raises `MissingPartError` if there are none."""
    if not rows:
        raise MissingPartError(empty)
    return rows


def of_rows(
    caption: str,
    rows: ReportRows,
    columns: Iterable[str],
    by: Sequence[str] = ("policy",),
    kind: str = "figures",
) -> str:
    """Return a table of some columns; the first of *by* names the rows."""
    names = [*by, *columns]
    cells = [[safe(value_of(name, row[name])) for name in names] for row in rows]
    return table(safe(caption), [safe(name.replace("_", " ")) for name in names], cells, kind)


def value_of(name: str, value: Any) -> str:
    """Return a value as text: a share in per cent, a number in a few digits."""
    if value is None:
        return NO_VALUE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if name.endswith("_share"):
            return f"{value:.1%}"
        return f"{value:.0f}" if name.endswith("_ms") and value >= 10 else cell(value)
    return str(value)


def decisions(content: ReportContent) -> str:
    """Return counts and shares by policy and day.  Raises `MissingPartError` without rows."""
    policies = filled(content["policies"], "The logs have no such row.")
    drawn = of_rows("By policy", [*map(with_shares, policies)], (*COUNTS, "models_changed"))
    if any(row["audited"] for row in policies):
        drawn += of_rows("Audits", policies, AUDITS) + note(DROPPED_NOTE)
    for policy, rows in by_policy(content["days"]):
        drawn += f"<h3>{safe(policy)}</h3>\n{shares_plot(policy, rows)}"
        drawn += of_rows("By day", [*map(with_shares, rows)], COUNTS, ("day",))
    return drawn


def with_shares(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row whose counts of decisions are followed by their shares."""
    return {**row, **{name: f"{row[name]} ({row[f'{name}_share']:.1%})" for name in DECISIONS}}


def by_policy(rows: ReportRows) -> list[tuple[str, ReportRows]]:
    """Return the rows of each policy's id."""
    return [(policy, [*each]) for policy, each in groupby(rows, itemgetter("policy"))]


def rates(content: ReportContent) -> str:
    """Return the error rates, and the numbers of other labels.  Raises `MissingPartError` without either."""
    found, labels = content["rates"], content["labels"]
    filled(
        [*found, *labels], "No row was drawn for labels (scoregate decisions sample), and none has a label."
    )
    drawn = ""
    if found:
        columns = ("drawn_at", "drawn", "labelled", "false_accepts", "false_rejects")
        rows = [
            {**row, **{f"false_{side}s": rate(row, side) for side in ("accept", "reject")}} for row in found
        ]
        drawn += of_rows("From drawn rows", rows, columns, ("policy", "drawing")) + note(RATES)
    if labels:
        drawn += of_rows(
            "Labelled rows", labels, ("drawn", "good", "bad", "split"), ("policy", "decision")
        ) + note(OTHERS)
    return drawn


def rate(row: Mapping[str, Any], side: str) -> str:
    """Return a rate with its interval, or why there is none."""
    value, low, high, why = (row[f"false_{side}_{name}"] for name in ("rate", "low", "high", "note"))
    said = [] if value is None else [f"{value:.1%}"]
    return ", ".join(
        [*said, *([f"{low:.1%} to {high:.1%}"] if low is not None else []), *([why] if why else [])]
    )


def times(content: ReportContent) -> str:
    """Return the time from the first byte to the decision.  Raises `MissingPartError` without rows."""
    policies = filled(content["policies"], "The logs have no such row.")
    drawn = of_rows("Milliseconds, by policy", policies, ("rows", *LATENCIES))
    for policy, rows in by_policy(content["days"]):
        lines = {name: [row[name] for row in rows] for name in LATENCIES}
        drawn += f"<h3>{safe(policy)}</h3>\n{lines_plot(f'milliseconds of {policy}', days_of(rows), lines)}"
        drawn += of_rows("Milliseconds, by day", rows, ("rows", *LATENCIES), ("day",))
    return drawn


def drift(content: ReportContent) -> str:
    """Return the drift of each metric.  Raises `MissingPartError` without rows."""
    rows = filled(content["drift"], "No row has a score.")
    columns = ("of", "reference", "before", "later", "psi", "ks", "p", "models_changed", "note")
    drawn = of_rows("After the reference", rows, columns, ("policy", "metric")) + note(DRIFT)
    for policy, each in by_policy(content["drift days"]):
        lines = {
            metric: [row["psi"] for row in of_metric]
            for metric, of_metric in groupby(each, itemgetter("metric"))
        }
        for metric, values in lines.items():
            days = [row["day"] for row in each if row["metric"] == metric]
            drawn += f"<h3>{safe(policy)}, {safe(metric)}</h3>\n"
            drawn += lines_plot(f"PSI of {metric}", days, {"PSI": values}, (0.1, 0.25))
    return drawn


def models(content: ReportContent) -> str:
    """Return the models of each policy's id.  Raises `MissingPartError` without rows."""
    rows = filled(content["models"], "The logs have no such row.")
    return of_rows("Models", rows, ("models", "first", "last", "rows"))


def nearest(content: ReportContent) -> str:
    """Return the decisions with the least margins.  Raises `MissingPartError` without them."""
    rows = filled(content["nearest"], "No row was decided by an expression.")
    drawn = note(NEAREST_NOTE)
    for (policy, decision), each in groupby(rows, lambda row: (row["policy"], row["decision"])):
        caption = f"{policy}: {decision}ed with the {'lowest' if decision == 'accept' else 'highest'} margin"
        shown = [
            {**row, "prompt": row["prompt"] or EMPTY_CELL, "caller_id": row["caller_id"] or NO_VALUE}
            for row in each
        ]
        columns = ("because", "prompt", "caller_id", "decision_id", "picture")
        drawn += of_rows(caption, shown, columns, ("margin",), "nearest")
    return drawn


def days_of(rows: ReportRows) -> list[str]:
    """Return the day of each row."""
    return [row["day"] for row in rows]


def frame(label: str, days: Sequence[str], body: str, top: str) -> str:
    """Return an SVG with axes, the first and the last day, and what 0 and the top stand for."""
    ends = [text(LEFT, HIGH - 4, days[0], "start"), text(WIDE, HIGH - 4, days[-1], "end")] if days[1:] else []
    ends = ends or [text(LEFT, HIGH - 4, days[0], "start")]
    return (
        f'<svg class="plot" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{safe(label)}, by day">'
        f'{body}<path class="axis" d="M{LEFT} 0V{FOOT}H{WIDE}"/>{"".join(ends)}'
        f"{text(LEFT - 5, FOOT, '0', 'end')}{text(LEFT - 5, 12, top, 'end')}</svg>\n"
    )


def shares_plot(policy: str, rows: ReportRows) -> str:
    """Return an SVG with a bar for each day, divided by decision."""
    width = (WIDE - LEFT) / len(rows)
    bars = []
    for place, row in enumerate(rows):
        foot = float(FOOT)
        for decision in DECISIONS:
            high = row[f"{decision}_share"] * FOOT
            foot -= high
            bars.append(
                f'<rect class="{decision}" x="{LEFT + place * width:.1f}" y="{foot:.1f}"'
                f' width="{max(width - 1, 0.5):.1f}" height="{high:.1f}"/>'
            )
    legend = "".join(f'<li class="{each}">{each}</li>' for each in DECISIONS)
    return (
        frame(f"shares of {policy}", days_of(rows), "".join(bars), "100 %")
        + f'<ul class="legend">{legend}</ul>\n'
    )


def lines_plot(
    label: str, days: Sequence[str], lines: Mapping[str, Sequence[float]], marks: Sequence[float] = ()
) -> str:
    """Return an SVG with a line for each series of values by day; *marks* are levels."""
    top = max([*marks, *(value for each in lines.values() for value in each)]) or 1.0
    step = (WIDE - LEFT) / max(len(days) - 1, 1)
    drawn = [f'<path class="mark" d="M{LEFT} {FOOT * (1 - mark / top):.1f}H{WIDE}"/>' for mark in marks]
    for values in lines.values():
        points = [(LEFT + place * step, FOOT * (1 - value / top)) for place, value in enumerate(values)]
        drawn.append(f'<path class="line" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points]
    return frame(f"{label}: {', '.join(lines)}", days, "".join(drawn), f"{top:.3g}")


STYLE = """
.figures th, .figures td { white-space: nowrap; }
.nearest th, .nearest td { overflow-wrap: normal; }
.nearest td { min-width: 12rem; }
.plot { display: block; width: 100%; max-width: 44rem; height: auto; overflow: visible; }
.plot text { fill: var(--quiet); font-size: 11px; }
.plot .axis { fill: none; stroke: var(--quiet); }
.plot .mark { fill: none; stroke: var(--line); stroke-dasharray: 4 3; }
.plot .line { fill: none; stroke: var(--accent); stroke-width: 1.5; }
.plot circle { fill: var(--accent); }
.plot .accept { fill: var(--accent); }
.plot .review { fill: var(--quiet); opacity: .6; }
.plot .reject { fill: var(--bad); opacity: .75; }
.legend { display: flex; gap: 1.25rem; padding: 0; list-style: none; }
.legend li::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.legend .accept::before { background: var(--accent); }
.legend .review::before { background: var(--quiet); opacity: .6; }
.legend .reject::before { background: var(--bad); opacity: .75; }
"""
