"""
`scoregate open`: the page of a result, in a browser where there is one.

Draws the page `RESULT.html` and prints its path. RESULT is what `batch` wrote, the folder of `versus` or of
`bench run`, what `bench NAME --json` printed, a log of decisions, or what `decisions report -o` wrote.
"""

import argparse
import os
import sys
import webbrowser

from scoregate.cli.arguments import OK, UsageError, add_settings, settings_of
from scoregate.report.result_page import ResultPageSettings, write_result_page

DISPLAYS = (
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "BROWSER",
)  # without one, Linux has browsers for terminals alone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, ResultPageSettings)


def run(arguments: argparse.Namespace) -> int:
    """Print the path of the page, and show it."""
    settings = settings_of(ResultPageSettings, arguments)
    try:  # most pages need the packages of an extra
        page = write_result_page(settings)
    except ModuleNotFoundError as exc:
        extra = "pip install './client[evaluate]' in a checkout of Scoregate"
        raise UsageError(f"open needs {exc.name}: {extra}") from exc
    print(page)
    if has_browser():
        webbrowser.open(page.resolve().as_uri())
    return OK


def has_browser(platform: str = sys.platform) -> bool:
    """Return True if a page can be shown in a window."""
    return not platform.startswith("linux") or any(map(os.environ.get, DISPLAYS))
