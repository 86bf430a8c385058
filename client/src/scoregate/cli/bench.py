"""`scoregate bench`: a benchmark's tables, from the user's copy of its data and the scores of metrics."""

import argparse
import json
from functools import partial
from importlib import import_module

from scoregate.cli.arguments import OK, add_commands
from scoregate.report.formats import FORMATS, printed

# A benchmark of metrics is a module with add_arguments(parser) and tables(arguments) -> Content, and one of
# generators a `Benchmark` that generators.py has by its name.
METRICS = {
    "ts2": "T2IscoreScore: rank, separation and delta of metrics, by subset",
    "geneval": "GenEval: generators by task, their failures by kind, and agreement with people",
    "genai": "GenAI-Bench: agreement of metrics with ratings, generators by skill, best of N",
    "winoground": "Winoground: text, image and group score of metrics by tag",
    "eqben": "EqBen: text, image and group score of metrics by source",
    "seetrue": "SeeTRUE: AUROC of metrics by source",
    "tifa160": "TIFA160: agreement of metrics with people's ratings",
    "gecko2k": "Gecko2K: metrics against people, point by point, side by side and in the generators' order",
}
GENERATORS = {
    "dpg": "DPG-Bench: generators by category, from sheets of pictures",
    "geneval2": "GenEval 2: generators by skill and by number of atoms",
    "oneig": "OneIG-Bench, alignment: generators by class, from sheets of pictures",
    "oneig_text": "OneIG-Bench, text: edit distance, pictures with all text, and words",
    "longtext": "LongText-Bench: words, or Chinese characters, that pictures show",
    "cvtg2k": "CVTG-2K: words, edit distance and CLIPScore of pictures with several texts",
    "compbench": "T2I-CompBench, attributes: generators by category, by P(yes) about noun phrases",
    "tiif": "TIIF-Bench: generators by attribute, for short and long prompts",
    "unigen": "UniGenBench++: generators by dimension and test point",
    "gedit": "GEdit-Bench: editors by task, by a judge of the edit and of the picture",
    "imgedit": "ImgEdit-Bench: editors by type of edit, by a judge",
    "kris": "KRIS-Bench: editors by dimension of knowledge, by a judge",
    "wise": "WISE: generators by category of world knowledge, by a judge",
    "wise_verified": "WISE_Verified: the same by the authors' update, with one grade",
}
RUN = "run"
SUITES = {RUN: "run a suite of benchmarks of generators: one page with all tables, LaTeX and a manifest"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the benchmarks."""
    add_commands(parser, "benchmark", METRICS | GENERATORS | SUITES, declare)


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Import a benchmark and declare its arguments."""
    if name in GENERATORS:
        from scoregate.bench.benchmark import add_benchmark
        from scoregate.bench.figures import benchmark_tables
        from scoregate.bench.generators import BENCHMARKS

        benchmark = BENCHMARKS[name]
        add_benchmark(benchmark, parser)
        tables = partial(benchmark_tables, benchmark)
    else:
        module = import_module(f"scoregate.bench.{'suite_run' if name == RUN else name}")
        module.add_arguments(parser)
        if name == RUN:
            parser.set_defaults(run=module.run)
            return
        tables = module.tables
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--format", choices=FORMATS, help="print tables for a paper")
    parser.add_argument("--table", metavar="NAME", help="print this table only (csv: default the first)")
    parser.set_defaults(tables=tables)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables.  Raises `BadInput` if the data or a column has no information."""
    content = {"benchmark": arguments.benchmark} | arguments.tables(arguments)
    if arguments.json:
        print(json.dumps(content, allow_nan=False))
    else:
        print(printed(content, arguments.format or "text", arguments.table))
    return OK
