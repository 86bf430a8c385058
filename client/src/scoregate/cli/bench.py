"""`scoregate bench`: a benchmark's tables, from the user's copy of its data and the scores of metrics."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.bench import BENCHMARKS, GENERATORS, TIMEOUT_S
from scoregate.cli.arguments import (
    NO_SCORE,
    OK,
    CommandText,
    add_commands,
    add_service,
    add_settings,
    example_of,
    service_of,
    settings_of,
)
from scoregate.formats import FORMATS, printed
from scoregate.settings import generator_paths
from scoregate.text import table

if TYPE_CHECKING:
    from scoregate.bench.benchmark import Benchmark
    from scoregate.bench.data import MetricBenchmark

RUN = "run"
SUITES = {
    RUN: CommandText(
        "run a suite of benchmarks of generators: one page with all tables, LaTeX and a manifest",
        "sd3=pictures/sd3 --suite t2i --data benchmarks -o report",
    )
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the benchmarks."""
    texts = {name: CommandText(each.help) for name, each in BENCHMARKS.items()}
    add_commands(parser, "benchmark", texts | SUITES, declare)


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Import a benchmark and declare its arguments."""
    if name == RUN:
        add_suite(parser)
        return
    benchmark = BENCHMARKS[name].benchmark
    parser.epilog = example_of(parser.prog, benchmark.example)
    add = parser.add_argument
    if benchmark.data:
        add("data", type=Path, metavar="DATA", help=benchmark.data)
    if benchmark.answers:
        what = benchmark.answers
        answers = add("answers", nargs="+", default=[], metavar="NAME=PATH", help=what)
    if name in GENERATORS:
        answers.required = False  # for --prompts; with `*` none could stand after an option
        what = "print a line of JSON for each prompt, with the names of its pictures, in place of the tables"
        add(
            "--prompts",
            dest="run",
            action="store_const",
            const=write_prompts,
            default=argparse.SUPPRESS,
            help=what,
        )
    add_settings(parser, benchmark.settings)
    if name in GENERATORS:
        add_service(parser)
    add("--json", action="store_true", help="print JSON")
    add("--format", choices=FORMATS, help="print tables for a paper")
    add("--table", metavar="NAME", help="print this table only (csv: default the first)")


def own_settings(benchmark: "Benchmark[Any] | MetricBenchmark[Any]", arguments: argparse.Namespace) -> Any:
    """Return the settings of a benchmark.  Raises `InputError`, `OSError`."""
    more = {"answers": generator_paths(arguments.answers)} if benchmark.answers else {}
    return settings_of(benchmark.settings, arguments, **more)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables.  Raises `InputError` if the data or a column has no information."""
    benchmark = BENCHMARKS[arguments.benchmark].benchmark
    tables = benchmark.tables(
        own_settings(benchmark, arguments),
        service_of(arguments, TIMEOUT_S),
    )
    content = {"benchmark": benchmark.name} | tables
    if arguments.json:
        print(json.dumps(content, allow_nan=False))
    else:
        print(printed(content, arguments.format or "text", arguments.table))
    return OK


def write_prompts(arguments: argparse.Namespace) -> int:
    """Print what a generator needs of each prompt."""
    from scoregate.bench.benchmark import Benchmark

    benchmark = BENCHMARKS[arguments.benchmark].benchmark
    assert isinstance(benchmark, Benchmark)  # others have no such option
    for line in benchmark.prompts(own_settings(benchmark, arguments)):
        print(json.dumps(line, ensure_ascii=False))
    return OK


def add_suite(parser: argparse.ArgumentParser) -> None:
    """Declare the generators, the suite, and the report."""
    from scoregate.bench.suite import SuiteSettings

    what = "a generator, by default the folder's name: pictures or a file of answers for each benchmark"
    parser.add_argument("generators", nargs="*", metavar="[NAME=]FOLDER", help=what)
    add_settings(parser, SuiteSettings)
    add_service(parser)
    parser.set_defaults(run=run_of_suite)


def run_of_suite(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if a benchmark failed, or a figure is not that of the manifest."""
    from scoregate.bench.suite import SuiteSettings, write_suite

    generators = generator_paths(arguments.generators)
    settings = settings_of(SuiteSettings, arguments, generators=generators)
    report = write_suite(settings, service_of(arguments, TIMEOUT_S))
    differ = report.differences
    if differ:
        for head, rows in (("PROVENANCE", differ.facts), ("FIGURE", differ.figures)):
            if rows:
                print(table([head, "THEN", "NOW"], rows) + "\n")
        print(f"{differ.compared} figures were compared, {len(differ.figures)} differ")
    return NO_SCORE if report.failed or (differ and differ.figures) else OK
