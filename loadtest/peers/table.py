"""Results of the comparison, stored in a file and printed as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path

import orjson

from loadtest.peers.loops import LOOPS, LoopRow
from loadtest.peers.peer import PEERS
from loadtest.peers.rounds import Result, Run, merged
from loadtest.peers.rows import ROWS, Row
from loadtest.report import Threshold, read_thresholds

AnyRow = Row | LoopRow
EVERY: Mapping[str, AnyRow] = {**ROWS, **LOOPS}
IN_PROCESS = "in process"  # the column of rows without a server on the other side
TARGETS = read_thresholds("peers")  # of ratios, by the names of `loadtest.peers.gate`


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
