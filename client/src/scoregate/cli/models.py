"""
`scoregate models`: list them, take them away from the service, bring them back, load other revisions.

The key needs the right `models`.
"""

import argparse
import json

from scoregate.cli.arguments import OK, UsageError, connected
from scoregate.cli.health import models_table

ACTIONS = ("load", "offload", "unload")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=ACTIONS, help="default: list the models")
    parser.add_argument("name", nargs="?", help="of the model in the profile")
    parser.add_argument("--revision", default="", help="for load: another revision, in its place")


def run(arguments: argparse.Namespace) -> int:
    """Print a table of the models, or the service's answer as JSON."""
    if arguments.revision and arguments.action != "load":
        raise UsageError("--revision belongs to load")
    if arguments.action and not arguments.name:
        raise UsageError(f"{arguments.action} needs the name of a model")
    with connected(arguments) as client:
        if not arguments.action:
            print(models_table(client.models()["models"]))
            return OK
        change = getattr(client, f"{arguments.action}_model")
        given = (arguments.name, arguments.revision) if arguments.revision else (arguments.name,)
        print(json.dumps(change(*given)))
    return OK
