"""`scoregate models`: take models away from the service, bring them back, and load other revisions."""

import argparse
import json

from scoregate.cli.arguments import OK, UsageFault, connected

ACTIONS = ("load", "offload", "unload")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("name", help="of the model in the profile")
    parser.add_argument("--revision", default="", help="for load: another revision, in its place")


def run(arguments: argparse.Namespace) -> int:
    """Print the service's answer as JSON."""
    if arguments.revision and arguments.action != "load":
        raise UsageFault("--revision belongs to load")
    with connected(arguments) as client:
        change = getattr(client, f"{arguments.action}_model")
        given = (arguments.name, arguments.revision) if arguments.revision else (arguments.name,)
        print(json.dumps(change(*given)))
    return OK
