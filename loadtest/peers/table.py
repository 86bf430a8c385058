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

AnyRow = Row | LoopRow
EVERY: Mapping[str, AnyRow] = {**ROWS, **LOOPS}
IN_PROCESS = "in process"  # the column of rows without a server on the other side


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
    """Yield the table of ratios, a column for each peer."""
    versions = {result.peer: result.version for result in results}
    peers = [name for name in (*PEERS, IN_PROCESS) if name in versions]
    cells = {(result.row, result.peer): cell(EVERY[result.row], result) for result in results}
    heads = [f"{name} {versions[name]}".strip() for name in peers]
    yield f"| ours over theirs | {' | '.join(heads)} | target |"
    yield "|---" * (len(peers) + 2) + "|"
    for name, row in EVERY.items():
        shown = [cells.get((name, peer), "") for peer in peers]
        if any(shown):
            yield f"| {row.what} | {' | '.join(shown)} | {target(row)} |"


def cell(row: AnyRow, result: Result) -> str:
    """Format a ratio, bold if the target is missed; for a corrupt picture both counts."""
    if isinstance(row, Row) and row.figure == "scored":
        return f"{merged(result.ours).value:.0f} / {merged(result.theirs).value:.0f}"
    if result.unanswered == len(result.theirs):
        return "it failed"
    ratio = f"{result.ratio:.2f}" if met(row, result) else f"**{result.ratio:.2f}**"
    return f"{ratio}, it failed {result.unanswered}×" if result.unanswered else ratio


def met(row: AnyRow, result: Result) -> bool:
    """Return True if a result reaches its row's target."""
    return row.met(result.ratio) if isinstance(row, Row) else result.ratio >= row.target


def target(row: AnyRow) -> str:
    """Format the target."""
    if row.target is None:
        return ""
    return f"{'≤' if isinstance(row, Row) and row.figure == 'p99 ms' else '≥'} {row.target:g}"


def details(results: Sequence[Result]) -> Iterator[str]:
    """Yield the medians behind each ratio."""
    yield "| row | beside | figure | ours | theirs | p50, ms | p99, ms | failed | |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for result in results:
        row = EVERY[result.row]
        figure = row.figure if isinstance(row, Row) else "pictures/s"
        ours, theirs = merged(result.ours), merged(result.theirs)
        pairs = (
            f"{getattr(ours, name):.0f} / {getattr(theirs, name):.0f}"
            for name in ("p50_ms", "p99_ms", "failed")
        )
        yield (
            f"| {result.row} | {result.peer} | {figure} | {ours.value:.1f} | {theirs.value:.1f} | "
            + " | ".join(pairs)
            + f" | {len(result.ours)} rounds |"
        )
