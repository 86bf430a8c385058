"""docs/dialects.md: the profile and the request that it shows, and the paths that it names."""

import re

from service.core.settings.dialects import OVER_HTTP
from service.web.dialects.registry import dialects, routers
from service.wiring.load import load_settings
from tests.support.pages import fences, named_rows, page, rows

PAGE = "dialects.md"


def test_every_dialect_is_listed_as_a_value_of_its_setting():
    """In the order of the timeouts, which is that of the settings."""
    [values] = [row[2] for row in named_rows(page("configuration.md")) if row[0] == "`dialects.enabled`"]

    assert [*OVER_HTTP] == re.findall(r"`(\w+)`", values)


def test_every_dialect_is_listed_with_its_paths():
    """The first table; of Flow-Factory's, those with a metric in the path stand in the text."""
    table = page(PAGE).split("\n## ", 1)[0]
    listed = {cells[0]: set(re.findall(r"`(?:GET|POST) (/\S+)`", cells[2])) for cells in rows(table)}
    for name in dialects():
        [paths] = [paths for cell, paths in listed.items() if f"[`{name}`]" in cell]
        routes = [route for router in routers([name], own_port=True) for route in router.routes]
        routed = {route.path for route in routes if "{" not in route.path}
        assert routed == paths - {"/health"}


def test_the_profile_shown_can_be_used(tmp_path):
    [(_, text)] = fences(PAGE, "toml")
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")
    enabled = load_settings(profile, {}).dialects.enabled

    assert [*OVER_HTTP] == enabled
