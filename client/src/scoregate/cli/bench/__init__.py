"""`scoregate bench`: a benchmark's tables, from the user's copy of its data and the scores of metrics."""

import argparse
import json

from scoregate.cli.bench import eqben, gecko2k, genai, geneval, seetrue, tifa160, ts2, winoground
from scoregate.cli.bench.tables import printed
from scoregate.cli.evaluate.formats import FORMATS
from scoregate.cli.exits import OK, UsageFault

HELP = "print a benchmark's tables, from your copy of its data and scores"

# A benchmark is a module with HELP, add_arguments(parser) and tables(arguments) -> Content.
BENCHMARKS = {
    "ts2": ts2,
    "geneval": geneval,
    "genai": genai,
    "winoground": winoground,
    "eqben": eqben,
    "seetrue": seetrue,
    "tifa160": tifa160,
    "gecko2k": gecko2k,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of each benchmark."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME")
    for name, module in BENCHMARKS.items():
        benchmark = names.add_parser(name, help=module.HELP, description=f"{module.HELP}.")
        module.add_arguments(benchmark)
        benchmark.add_argument("--json", action="store_true", help="print JSON")
        benchmark.add_argument("--format", choices=FORMATS, help="print tables for a paper")
        benchmark.add_argument(
            "--table", metavar="NAME", help="print this table only (csv: default the first)"
        )


def run(arguments: argparse.Namespace) -> int:
    """Print the tables.  Raises `UsageFault` if the data or a column has no information."""
    try:
        from scoregate.evaluation import BadInput
    except ModuleNotFoundError as exc:
        raise UsageFault(
            f"bench needs {exc.name}: pip install './client[evaluate]' in a checkout of Scoregate"
        ) from exc
    try:
        content = {"benchmark": arguments.benchmark} | BENCHMARKS[arguments.benchmark].tables(arguments)
    except BadInput as exc:
        raise UsageFault(str(exc)) from exc
    if arguments.json:
        print(json.dumps(content, allow_nan=False))
    else:
        print(printed(content, arguments.format or "text", arguments.table))
    return OK
