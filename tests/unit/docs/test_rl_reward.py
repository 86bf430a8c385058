"""docs/guides/rl-reward.md: its tables have every trainer, and what is copied from them leads somewhere."""

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from service.web.dialects.registry import routers
from service.wiring.load import load_settings
from tests.support.pages import page, rows

PAGE = "guides/rl-reward.md"
TABLE = [cells for cells in rows(page(PAGE).split("\n## Rules", 1)[0]) if cells[0] != "trainer"]
NO_TRAINERS = {"README", "comfyui", "diffusers"}  # pages of pipelines
TRAINERS = ["unirl", "cosmos_rl", "openrlhf", "slime"]  # dialects that have no adapter
PORTS = {8001: TRAINERS, 18086: []}


def settings_of(cells):
    """What is copied, without its quotes: a name of our package, or an address."""
    return [
        copied for copied in re.findall(r"`([^`]+)`", cells[1]) if re.search(r"scoregate|http://", copied)
    ]


def test_every_trainer_has_a_row():
    """Those with a page, and the dialects of the others."""
    linked = " ".join(cells[0] for cells in TABLE)
    pages = {path.stem for path in (Path(__file__).parents[3] / "docs/trainers").glob("*.md")} - NO_TRAINERS

    assert all(f"../trainers/{name}.md" in linked for name in pages)
    assert all(f"../reference/dialects.md#{name}" in linked for name in ("unirl", "cosmos_rl", "openrlhf"))


def test_each_profile_that_is_named_is_one_for_such_a_card():
    """It is shipped, and its memory is less than the card's."""
    [named] = re.findall(r"^\[Profiles\].*?\n\n", page(PAGE), re.MULTILINE | re.DOTALL)
    found = re.findall(r"`([\w-]+)` [^`]*?\sof\s(\d+) GB", named)
    memory = {each[0].strip("`"): each[1] for each in rows(page("reference/profiles.md")) if len(each) == 4}

    assert 2 == len(found)
    for profile, size in found:
        assert load_settings(Path(profile), {}).models
        assert float(memory[profile]) < int(size)


@pytest.mark.parametrize("cells", TABLE, ids=lambda cells: cells[0])
def test_what_is_copied_from_a_row_is_there(cells):
    """A name of our package, or addresses of routes of the dialects."""
    copied = settings_of(cells)

    assert copied
    for setting in copied:
        if name := re.search(r"scoregate\.trainers[\w.]*", setting):
            module, _, attribute = name[0].rpartition(".")
            if imported := re.search(r" import (\w+)", setting):
                module, attribute = name[0], imported[1]
            elif "pkg://" in setting:
                module, attribute = name[0], "compute_score"
            source = Path(find_spec(module).origin).read_text("utf-8")  # may import its trainer
            assert re.search(rf"^ *(?:async )?(?:def|class|) *{attribute}\b", source, re.MULTILINE)
            continue
        address = urlsplit(re.search(r"http://\S+", setting)[0])
        routed = {route.path for router in routers(PORTS[address.port]) for route in router.routes}
        paths = {address.path, f"{address.path}/score"}  # UniRL's client adds the last part
        assert paths & routed or address.port == 18086
