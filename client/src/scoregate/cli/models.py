"""
`scoregate models`: list them, take them away from the service, bring them back, load other revisions.

The key needs the right `models`.
"""

import argparse
import json

from scoregate.cli.arguments import OK, add_settings, service_of, settings_of
from scoregate.cli.health import models_table
from scoregate.inventory import ModelsSettings, models


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, ModelsSettings)


def run(arguments: argparse.Namespace) -> int:
    """Print a table of the models, or the service's answer as JSON."""
    settings = settings_of(ModelsSettings, arguments)
    answer = models(settings, service_of(arguments))
    print(json.dumps(answer) if settings.action else models_table(answer["models"]))
    return OK
