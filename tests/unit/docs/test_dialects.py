"""docs/dialects.md: the profile and the request that it shows, and the paths that it names."""

import re
from typing import get_args

from service.core.settings.dialects import Dialect
from service.web.dialects.registry import ROUTERS, routers
from service.wiring.load import load_settings
from tests.support.pages import fences, page, rows

PAGE = "dialects.md"


def test_every_dialect_of_the_settings_has_routes():
    assert set(get_args(Dialect)) == ROUTERS.keys()


def test_every_dialect_is_listed_with_its_paths():
    """The first table; of Flow-Factory's, those with a metric in the path stand in the text."""
    table = page(PAGE).split("\n## ", 1)[0]
    listed = {cells[0]: set(re.findall(r"`(?:GET|POST) (/\S+)`", cells[2])) for cells in rows(table)}
    for name in ROUTERS:
        [paths] = [paths for cell, paths in listed.items() if f"[`{name}`]" in cell]
        routes = [route for router in routers([name], own_port=True) for route in router.routes]
        routed = {route.path for route in routes if "{" not in route.path}
        assert routed == paths - {"/health"}


def test_the_profile_shown_can_be_used(tmp_path):
    [(_, text)] = fences(PAGE, "toml")
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")
    dialects = load_settings(profile, {}).dialects

    assert get_args(Dialect) == tuple(dialects.enabled)
