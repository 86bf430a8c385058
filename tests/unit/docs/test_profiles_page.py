"""The page of the profiles, against the profiles and the declarations of the metrics."""

import re

from service.metrics.common.registry import metrics
from service.process.needs import served
from service.wiring.load import PROFILES, load_settings
from tests.support.pages import named_rows, page, rows, section

PAGE = "profiles.md"
NAMES = sorted(path.stem for path in PROFILES.glob("*.toml"))
PROMPT = "a photo of a red cup and a blue bowl"
HAS = {True: "yes", False: "with sets", None: ""}


def summed(name: str) -> str:
    """The sum of the memory in a profile's comments, in GB; empty without one."""
    found = re.search(r"^# +sum +([\d.]+)", (PROFILES / f"{name}.toml").read_text("utf-8"), re.MULTILINE)
    return found[1] if found else ""


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
    has = [served(load_settings(PROFILES / f"{name}.toml", {})) for name in profiles]

    assert sorted(profiles) == NAMES
    assert [
        [f"`{name}`", *needed(name), *(HAS[each.get(name)] for each in has)] for name in metrics()
    ] == table
