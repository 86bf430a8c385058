"""`python -m service.metrics.replay METRIC --answers FILE …`: published numbers, computed by our code."""

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

import orjson

from service.metrics import replay as package
from service.metrics.replay.contract import Replay

WRONG = 2


def replays() -> dict[str, Replay]:
    """Those that the modules of this package declare, by the name of their metric."""
    modules = [info.name for info in iter_modules(package.__path__) if not info.name.startswith("_")]
    declared = {name: vars(import_module(f"{package.__name__}.{name}")).get("replay") for name in modules}
    return {name: found for name, found in declared.items() if isinstance(found, Replay)}


def main() -> None:
    """Print the numbers as JSON, an object a line; one line and status 2 where the files cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m service.metrics.replay", description=__doc__)
    metrics = parser.add_subparsers(dest="metric", required=True, metavar="METRIC")
    known = replays()
    for name, replay in known.items():
        replay.add_arguments(metrics.add_parser(name, help=replay.help, description=replay.help))
    arguments = parser.parse_args()
    try:
        numbers = known[arguments.metric].numbers(arguments)
    except (OSError, ValueError) as exc:
        print(f"replay: {exc}", file=sys.stderr)
        sys.exit(WRONG)
    for row in [numbers] if isinstance(numbers, Mapping) else numbers:
        print(orjson.dumps(row).decode())


if __name__ == "__main__":
    main()
