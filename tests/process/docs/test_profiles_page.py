"""The page of the profiles, against the one that runs on any machine."""

import re

import httpx

from tests.support.pages import rows, section


def test_the_page_has_what_the_demo_serves(demo_service):
    """Further outputs of a metric, such as `ocr.exact`, stand with it."""
    [metrics] = [
        cells[1]
        for cells in rows(section("reference/profiles.md", "## Which metric runs where"))
        if cells[0] == "`demo`"
    ]
    answer = httpx.get(f"{demo_service.url}/models", trust_env=False).json()

    assert {name for name in answer["metrics"] if "." not in name} == set(re.findall(r"`(\w+)`", metrics))
