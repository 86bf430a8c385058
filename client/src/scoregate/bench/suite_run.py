"""`scoregate bench run`: the benchmarks of a suite over generators' folders, as one page with a manifest."""

import argparse
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scoregate.answers import is_number
from scoregate.bench.data import json_of
from scoregate.bench.figures import benchmark_tables
from scoregate.bench.suite import BUILT_IN, Content, Entry, checked, entries_of, source_of, suite_in
from scoregate.bench.suite_page import latex_of, page, worst
from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    UsageFault,
    add_concurrency,
    add_service,
    add_settings,
    connected,
)
from scoregate.cli.batch import TIMEOUT_S, plan_of
from scoregate.cli.reproduce import TOLERANCE, flat
from scoregate.errors import ScoregateError
from scoregate.evaluation.outcome import Drawings
from scoregate.progress import say
from scoregate.records import BadInput, NoResult
from scoregate.report.formats import NONE, cell
from scoregate.runs.manifest import digest_of, is_text, used
from scoregate.settings import VERSION, count, finite
from scoregate.text import table

FORM = 1
RESULTS, TABLES, MANIFEST = "results", "tables.json", "manifest.json"  # of the report
SETTINGS = ("bootstrap", "seed", "strict")  # of the figures of all benchmarks
SERVICE = ("concurrency", "base_url", "local", "api_key", "timeout")
WORST = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the generators, the suite, and the report."""
    add = parser.add_argument
    what = "a generator, by default the folder's name: pictures or a file of answers for each benchmark"
    add("generators", nargs="*", type=generator, metavar="[NAME=]FOLDER", help=what)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--suite", metavar="SUITE", help=f"a TOML file, or {', '.join(BUILT_IN)}")
    what = "repeat the run of a manifest, and show what differs"
    group.add_argument("--again", type=Path, metavar="MANIFEST", help=what)
    what = "the folder of data (default: that of the suite's file; of a built-in suite the current one)"
    add("--data", type=Path, metavar="FOLDER", help=what)
    what = (
        "the folder of the report, which the same command continues (default report-SUITE; with --again none)"
    )
    add("-o", "--out", type=Path, metavar="REPORT", help=what)
    what = "pictures on the page of each generator and benchmark (default %(default)s)"
    add("--worst", type=count, default=WORST, metavar="N", help=what)
    what = "figures of --again within X are equal (default %(default)s)"
    add("--tolerance", type=finite, default=TOLERANCE, metavar="X", help=what)
    add("--strict", action="store_true", help="a score that the service warns about is an error")
    add_settings(parser, Drawings)
    add_concurrency(parser)
    add_service(parser)


def generator(text: str) -> tuple[str, Path]:
    """Return a generator's name and its folder."""
    path = Path(text.partition("=")[2] or text)
    name = text.partition("=")[0] if "=" in text else path.resolve().name
    if not path.is_dir() or not name or Path(name).name != name:
        raise argparse.ArgumentTypeError(f"{text}: not FOLDER or NAME=FOLDER, a folder that exists")
    return name, path


@dataclass
class Report:
    """
    The outcome of a suite.

    Attributes:
        tables: by entry, as `scoregate bench NAME --json` has them.
        left_out: what has no figures: the entry, the generator unless it is all of them, and why.
        failed: whether something of this had an error, and was not just missing.
        worst: HTML, by entry.
        facts: of the client, the service and its models, and digests by entry.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)
    failed: bool = False
    worst: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=lambda: {"client": VERSION, "benchmarks": {}})

    def leave_out(self, entry: Entry, why: str, generator: str = "all") -> None:
        """Note and print why there are no figures."""
        self.left_out.append({"benchmark": entry.name, "generator": generator, "why": why})
        say(f"{entry.name}, {generator}: left out: {why}")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if a benchmark failed, or a figure is not that of the manifest."""
    then = manifest_in(arguments.again) if arguments.again else None
    content, base = again(arguments, then) if then else chosen(arguments)
    names = [name for name, _ in arguments.generators]
    if not names or len(set(names)) < len(names):
        raise UsageFault("two generators have one name" if names else "name a generator: [NAME=]FOLDER")
    if not then:
        arguments.out = arguments.out or Path(f"report-{Path(arguments.suite).stem}")
    if then and arguments.out and (arguments.out / MANIFEST).exists():
        raise UsageFault(f"--out {arguments.out}: --again scores anew, and there is a report already")
    given = vars(arguments)
    common = {name: given[name] for name in (*SETTINGS, *SERVICE) if name in given}
    entries = entries_of(content, arguments.suite, base, common)
    with ExitStack() as stack:
        out = (arguments.out or Path(stack.enter_context(TemporaryDirectory()))).resolve()
        report = scored(arguments, entries, out, stack)
        if not report.tables:
            raise NoResult("no benchmark of the suite has figures")
        written = manifest_of(arguments, content, base, out, report.facts)
        if arguments.out:
            write(arguments, out, report, written)
        same = not then or print_differences(arguments, then, report)
    return OK if same and not report.failed else NO_SCORE


def chosen(arguments: argparse.Namespace) -> tuple[Content, Path]:
    """Return the entries of `--suite`, and the folder of their data.  Raises `UsageFault`, `BadInput`."""
    path = BUILT_IN.get(arguments.suite) or Path(arguments.suite)
    if not path.exists():
        raise UsageFault(f"--suite {path}: no such file, and the built-in suites are {', '.join(BUILT_IN)}")
    return suite_in(path), arguments.data or (Path() if arguments.suite in BUILT_IN else path.parent)


def again(arguments: argparse.Namespace, then: Mapping[str, Any]) -> tuple[Content, Path]:
    """Return the entries of a manifest and the folder of their data, and set its arguments."""
    folder = arguments.again.parent
    arguments.suite = then["suite"]
    if not arguments.generators:
        arguments.generators = [(name, folder / path) for name, path in then["generators"].items()]
    for name, value in then["settings"].items():
        setattr(arguments, name, value)
    return then["benchmarks"], arguments.data or folder / then["data"]


def scored(arguments: argparse.Namespace, entries: Sequence[Entry], out: Path, stack: ExitStack) -> Report:
    """Return the tables of all benchmarks; one client of *stack* scores the pictures of all."""
    report, served, client = Report(), dict[str, Any](), None
    sources = {
        entry.name: {name: source_of(folder, entry.name) for name, folder in arguments.generators}
        for entry in entries
    }
    if any(path and path.is_dir() for of_entry in sources.values() for path in of_entry.values()):
        client = stack.enter_context(connected(arguments, TIMEOUT_S))
        served = client.models()
    metrics = dict[str, None]()
    for entry in entries:
        if found := usable(entry, sources[entry.name], served.get("metrics", {}), report):
            own = entry.arguments
            own.generators, own.out, own.client = [*found.items()], out / RESULTS / entry.name, client
            tabulate(entry, report, arguments.worst)
            report.facts["benchmarks"][entry.name] = {
                "data": {name: digest_of_all(path) for name, path in entry.data.items()},
                "pictures": {name: digest_of_all(path) for name, path in found.items()},
            }
            metrics |= dict.fromkeys(entry.benchmark.reading.metrics if own.out.exists() else ())
    if metrics:
        report.facts |= used(served, plan_of(served, [*metrics], {}))
    return report


def usable(
    entry: Entry, sources: Mapping[str, Path | None], served: Mapping[str, Any], report: Report
) -> dict[str, Path]:
    """Return what can be scored or counted, by generator; the report has why the others are left out."""
    if absent := [str(path) for path in entry.data.values() if not path.exists()]:
        report.leave_out(entry, f"no data: {', '.join(absent)}")
        return {}
    missing = [metric for metric in entry.benchmark.reading.metrics if metric not in served]
    found = dict[str, Path]()
    for name, path in sources.items():
        if path is None:
            report.leave_out(entry, "no folder of pictures, and no file of answers", name)
        elif path.is_dir() and missing:
            report.leave_out(entry, f"not served: {', '.join(missing)}", name)
        else:
            found[name] = path
    return found


def tabulate(entry: Entry, report: Report, most: int) -> None:
    """Add the tables of a benchmark and its worst pictures to the report, or why there are none."""
    say(f"{entry.name}:")
    try:
        tables = {"benchmark": entry.benchmark.name} | benchmark_tables(entry.benchmark, entry.arguments)
        shown = worst(entry, most)
    except ScoregateError:  # of the service, not of this benchmark's files
        raise
    except (UsageFault, BadInput, OSError) as exc:
        report.failed = True
        report.leave_out(entry, f"failed: {exc}")
    else:
        report.tables[entry.name], report.worst[entry.name] = tables, shown


def digest_of_all(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files of a folder."""
    if path.is_file():
        return digest_of(path)
    files = {each.relative_to(path).as_posix(): each for each in path.rglob("*") if each.is_file()}
    lines = (f"{name}\0{digest_of(file)}\n" for name, file in sorted(files.items()))
    return sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def manifest_of(
    arguments: argparse.Namespace, content: Content, base: Path, out: Path, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what repeats the run; paths are relative to the folder *out* of the report."""
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    words = [f"{name}={path}" for name, path in arguments.generators]
    words += ["--suite", arguments.suite, "--data", str(base), "--out", str(arguments.out)]
    words += ["--bootstrap", str(arguments.bootstrap), "--seed", str(arguments.seed)]
    return {
        "bench_run": FORM,
        "command": shlex.join(["scoregate", "bench", "run", *words, *["--strict"] * arguments.strict]),
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "suite": arguments.suite,
        "benchmarks": content,
        "data": os.path.relpath(base.resolve(), out),
        "generators": {name: os.path.relpath(path.resolve(), out) for name, path in arguments.generators},
        "settings": settings,
        "facts": facts,
    }


def manifest_in(path: Path) -> dict[str, Any]:
    """Return a manifest of this command, with the tables of its run.  Raises `BadInput` for another file."""
    content = json_of(path)
    if not (isinstance(content, dict) and content.get("bench_run") == FORM):
        raise BadInput(f"{path}: this is no manifest of `scoregate bench run`")
    try:
        checked(content["benchmarks"], str(path))
        given = [content["suite"], content["data"], *content["generators"].values()]
        whole = content["settings"].keys() == {*SETTINGS} and isinstance(content["facts"], dict)
    except (KeyError, TypeError, AttributeError):
        whole, given = False, []
    if not (whole and all(map(is_text, given))):
        raise BadInput(f"{path}: a part of the manifest is missing, or of another form")
    return content | {"tables": json_of(path.with_name(TABLES))}


def write(arguments: argparse.Namespace, out: Path, report: Report, manifest: Mapping[str, Any]) -> None:
    """Write the four files of the report."""
    files = {
        TABLES: json.dumps(report.tables, indent=2, ensure_ascii=False, allow_nan=False),
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False),
        "tables.tex": latex_of(report.tables),
        "index.html": page(manifest, report.tables, report.left_out, report.worst),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(f"{text}\n", "utf-8", errors="backslashreplace")
        say(str(arguments.out / name))


def print_differences(arguments: argparse.Namespace, then: Mapping[str, Any], report: Report) -> bool:
    """Print facts and figures that are not those of the manifest; return whether all figures are."""
    before, now = flat(then["facts"]), flat(report.facts)
    facts = [
        [name, before.get(name, NONE), now.get(name, NONE)]
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    old, new = dict(figures_in(then["tables"])), dict(figures_in(report.tables))
    differ = [
        [name, cell(old.get(name)), cell(new.get(name))]
        for name in dict.fromkeys([*old, *new])
        if not (name in old and name in new and abs(old[name] - new[name]) <= arguments.tolerance)
    ]
    for head, rows in (("PROVENANCE", facts), ("FIGURE", differ)):
        if rows:
            print(table([head, "THEN", "NOW"], rows) + "\n")
    print(f"{len(old.keys() & new.keys())} figures were compared, {len(differ)} differ")
    return not differ


def figures_in(content: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in *content*, each with its place, in which a row has its number and first cell."""
    parts = [*content.items()] if isinstance(content, Mapping) else []
    for number, each in enumerate(content if isinstance(content, list | tuple) else (), 1):
        first = next(iter(each.values()), "") if isinstance(each, Mapping) else ""
        parts.append((f"{number} {first}".strip(), each))
    for name, each in parts:
        yield from figures_in(each, f"{place} / {name}" if place else name)
    if is_number(content):
        yield place, float(content)
