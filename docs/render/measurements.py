"""`measurements.md`: the figures of `make loadtest`, from the table of their thresholds."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.render.markdown import code, join, table

THRESHOLDS = Path(__file__).parents[2] / "loadtest" / "thresholds.toml"
INTRO = """
# Measurements

The figures of `make loadtest` ([how they are measured](../performance.md#the-projects-measurements)): what
each is, the threshold that decides the exit status, and what was measured on a virtual machine with two cores
(AVX-512), at different times; most are ratios within one run.
"""


def page() -> str:
    """Return the page: a row for each figure with a threshold."""
    figures = tomllib.loads(THRESHOLDS.read_text("utf-8"))["short"]
    rows = [
        [code(name), bounds(declared), declared["measured"], declared["meaning"]]
        for name, declared in figures.items()
    ]
    return join(INTRO, table(["figure", "threshold", "measured", "meaning"], rows))


def bounds(declared: Mapping[str, Any]) -> str:
    """Return the least and the largest value that meets the target."""
    least, most = declared.get("least"), declared.get("most")
    if least == most:
        return f"{least:g}"
    if least is not None and most is not None:
        return f"{least:g} to {most:g}"
    return f"at least {least:g}" if most is None else f"at most {most:g}"
