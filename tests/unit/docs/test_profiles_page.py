"""The page of the profiles, against the profiles and the declarations of the metrics."""

import re

from service.core.settings.tree import Settings
from service.metrics.common.registry import assign, metrics
from service.wiring.load import PROFILES, load_settings
from tests.support.pages import named_rows, page, rows, section

PAGE = "profiles.md"
NAMES = sorted(path.stem for path in PROFILES.glob("*.toml"))
# A model can be unsuitable, which only a start shows: see tests/process/docs/test_profiles_page.py.
REFUSED = {"demo": {"judge"}}


def summed(name: str) -> str:
    """The sum of the memory in a profile's comments, in GB; empty without one."""
    found = re.search(r"^# +sum +([\d.]+)", (PROFILES / f"{name}.toml").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else ""


def served(settings: Settings) -> dict[str, bool]:
    """The metrics that have their models; False if they need a caller's question sets."""
    assigned = assign(metrics(), settings)
    return {
        name: not metric.style or (name, "questions") in assigned
        for name, metric in metrics().items()
        if metric.roles and all((name, role) in assigned for role in metric.roles)
    }


def column(profile: str) -> dict[str, bool]:
    """What a profile serves."""
    configured = served(load_settings(PROFILES / f"{profile}.toml", {}))
    return {name: alone for name, alone in configured.items() if name not in REFUSED.get(profile, ())}


def test_the_page_has_each_profile_with_its_memory():
    """The sum of the profile's own comment."""
    table = {cells[0].strip("`"): cells[2] for cells in named_rows(page(PAGE).split("\n## ")[0])}

    assert {name: summed(name) for name in NAMES} == {name: table[name] for name in NAMES}


def named(cell: str) -> set[str]:
    """The names in code type."""
    return set(re.findall(r"`([\w-]+)`", cell))


def test_the_page_has_what_each_profile_serves():
    """For each profile: the metrics that it serves alone, and those that need a caller's question sets."""
    _, *table = rows(section(PAGE, "## Which metric runs where"))
    shown = {profile: (named(alone), named(sets)) for cell, alone, sets in table for profile in named(cell)}
    served_by = {name: column(name) for name in NAMES}

    assert shown == {
        name: tuple({metric for metric, alone in has.items() if alone is want} for want in (True, False))
        for name, has in served_by.items()
    }


def test_the_page_names_the_metrics_that_no_profile_serves():
    """They need a profile of one's own."""
    [line] = re.findall(r"^No profile has models for (.*)\. \[", page(PAGE), re.MULTILINE)

    assert named(line) == metrics().keys() - {name for profile in NAMES for name in column(profile)}
