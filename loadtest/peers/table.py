"""Results of the comparison: stored in a file, as Markdown, as figures for the exit status, and as a plot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from statistics import median

import matplotlib.figure
import orjson

from loadtest.peers.peer import PEERS
from loadtest.peers.rows import LOOPS, ROWS, LoopRow, Result, Row, Run, merged
from loadtest.report import Figure, Threshold, read_thresholds

AnyRow = Row | LoopRow
EVERY: Mapping[str, AnyRow] = {**ROWS, **LOOPS}
IN_PROCESS = "in process"  # the column of rows without a server on the other side
TARGETS = read_thresholds("peers")  # ratios, by the names of `figures`


def keep(results: Sequence[Result], file: Path) -> list[Result]:
    """Replace earlier results of the same rows and peers; return all, in the table's order."""
    held = {(result.row, result.peer): result for result in (*read(file), *results)}
    order = list(EVERY)
    every = sorted(held.values(), key=lambda result: order.index(result.row))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps([asdict(result) for result in every], option=orjson.OPT_INDENT_2))
    return every


def read(file: Path) -> list[Result]:
    """Return the stored results of existing rows; none without a file."""
    found = orjson.loads(file.read_bytes()) if file.is_file() else []
    return [
        Result(one["row"], one["peer"], one["version"], runs(one["ours"]), runs(one["theirs"]))
        for one in found
        if one["row"] in EVERY
    ]


def runs(written: Sequence[Mapping[str, float | None]]) -> list[Run]:
    """Return stored runs; JSON has null for infinite latencies."""
    return [
        Run(**{name: inf if value is None else value for name, value in run.items()})  # type: ignore[arg-type]
        for run in written
    ]


def table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the table of ratios, a column for each peer; behind a ratio p50 and p99, ours / theirs in ms."""
    versions = {result.peer: result.version for result in results}
    peers = [name for name in (*PEERS, IN_PROCESS) if name in versions]
    cells = {(result.row, result.peer): cell(EVERY[result.row], result) for result in results}
    heads = [f"{name} {versions[name]}".strip() for name in peers]
    yield f"| ours over theirs · p50 · p99, ms | {' | '.join(heads)} | target |"
    yield "|---" * (len(peers) + 2) + "|"
    for name, row in EVERY.items():
        shown = [cells.get((name, peer), "") for peer in peers]
        if any(shown):
            yield f"| {row.what} | {' | '.join(shown)} | {target(name)} |"


def cell(row: AnyRow, result: Result) -> str:
    """Format a ratio, bold if its target is missed, and latencies; for a corrupt picture both counts."""
    if result.unanswered == len(result.theirs):
        return "it failed"
    ratio = f"{result.ratio:.2f}" if met(result) else f"**{result.ratio:.2f}**"
    if isinstance(row, Row) and row.figure == "scored":
        ratio = both(result, "value")
    shown = " · ".join([ratio, both(result, "p50_ms"), both(result, "p99_ms")])
    return f"{shown}, it failed {result.unanswered}×" if result.unanswered else shown


def both(result: Result, figure: str) -> str:
    """Format the medians of a field of `Run`."""
    ours, theirs = (getattr(merged(runs), figure) for runs in (result.ours, result.theirs))
    return f"{ours:.0f} / {theirs:.0f}"


def met(result: Result) -> bool:
    """Return True if a result reaches its row's target."""
    return TARGETS.get(result.row, Threshold()).met(result.ratio)


def target(name: str) -> str:
    """Format the targets of a row: of its ratio, then of its latencies over those of a peer."""
    latencies = {
        key: key.removeprefix(f"{name}-").split("-") for key in TARGETS if key.startswith(f"{name}-p")
    }
    shown = [f"{share} {TARGETS[key]} ({peer})" for key, (share, peer) in latencies.items()]
    return ", ".join([*([str(TARGETS[name])] if name in TARGETS else []), *shown])


def details(results: Sequence[Result]) -> Iterator[str]:
    """Yield the medians behind each ratio."""
    yield "| row | beside | figure | ours | theirs | failed | |"
    yield "|---|---|---|---|---|---|---|"
    for result in results:
        row = EVERY[result.row]
        figure = row.figure if isinstance(row, Row) else "pictures/s"
        ours, theirs = merged(result.ours), merged(result.theirs)
        yield (
            f"| {result.row} | {result.peer} | {figure} | {ours.value:.1f} | {theirs.value:.1f} "
            f"| {ours.failed} / {theirs.failed} | {len(result.ours)} rounds |"
        )


def figures(results: Sequence[Result]) -> Iterator[Figure]:
    """
    Yield the figures of each measured row that decide the exit status.

    `ROW` is its worst ratio over the peers, `ROW-p50-PEER` and `ROW-p99-PEER` are its latencies over that
    peer's.  A peer that failed in every round has none.
    """
    for name, row in EVERY.items():
        ratios = {result.peer: result.ratio for result in results if result.row == name and result.ratios}
        if ratios:
            worst = max if isinstance(row, Row) and row.figure == "p99 ms" else min
            peer = worst(ratios, key=lambda peer: ratios[peer])
            yield Figure(name, ratios[peer], note=f"beside {peer}")
    for result in results:
        for share in ("p50", "p99"):
            if latencies := result.ratios_of(f"{share}_ms"):
                yield Figure(f"{result.row}-{share}-{result.peer}", median(latencies))


def plot(results: Sequence[Result], file: Path) -> None:
    """Write a PNG: a bar for each ratio, its rounds as dots; to the right of 1 the service is ahead."""
    shown = [result for result in results if is_ratio(result)][::-1]
    figure = matplotlib.figure.Figure(figsize=(10, 1.5 + 0.32 * len(shown)), layout="tight")
    axes = figure.subplots()
    for place, result in enumerate(shown):
        axes.barh(place, ahead(result, result.ratio), color="tab:green" if met(result) else "tab:red")
        for ratio in filter(None, result.ratios):
            axes.plot(ahead(result, ratio), place, "k.", markersize=4)
    axes.set_yticks(range(len(shown)), [f"{EVERY[r.row].what}: {r.peer} {r.version}" for r in shown])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xlabel="how many times ahead of the peer (green: the target is met)")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=90)


def is_ratio(result: Result) -> bool:
    """Return True if the ratio can be drawn: no count of pictures, and neither side is 0."""
    row = EVERY[result.row]
    return 0 < result.ratio < inf and not (isinstance(row, Row) and row.figure == "scored")


def ahead(result: Result, ratio: float) -> float:
    """Return the ratio, inverted for a p99, so that more is better."""
    row = EVERY[result.row]
    return 1 / ratio if isinstance(row, Row) and row.figure == "p99 ms" else ratio
