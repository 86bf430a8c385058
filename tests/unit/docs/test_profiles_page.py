"""The page of the profiles, against the profiles and the declarations of the metrics."""

import re

from service.core.settings.tree import Settings
from service.metrics.common.registry import assign, metrics
from service.wiring.load import PROFILES, load_settings
from tests.support.pages import named_rows, page, rows, section

PAGE = "profiles.md"
NAMES = sorted(path.stem for path in PROFILES.glob("*.toml"))
PROMPT = "a photo of a red cup and a blue bowl"
HAS = {True: "yes", False: "with sets", None: ""}
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


def needed(name: str) -> list[str]:
    """The roles of a metric's models, and its calls for one picture."""
    metric = metrics()[name]
    writes = ["`questions`"] if metric.style else []
    calls = metric.demand(PROMPT, metric.options())
    texts = [f"{demand.calls} `{role}`" for role, demand in calls.items() if demand.calls]
    return [", ".join([f"`{role}`" for role in metric.roles] + writes), ", ".join(texts)]


def test_the_page_has_each_profile_with_its_memory():
    """The sum of the profile's own comment."""
    table = {cells[0].strip("`"): cells[2] for cells in named_rows(page(PAGE).split("\n## ")[0])}

    assert {name: summed(name) for name in NAMES} == {name: table[name] for name in NAMES}


def test_the_page_has_what_each_profile_serves():
    """For each metric: the models that it needs, its calls, and the profiles that have the models."""
    heading, *table = rows(section(PAGE, "## Which metric runs where"))
    profiles = [cell.strip("`") for cell in heading[3:]]
    has = [column(name) for name in profiles]

    assert sorted(profiles) == NAMES
    assert [
        [f"`{name}`", *needed(name), *(HAS[each.get(name)] for each in has)] for name in metrics()
    ] == table
