"""Versions of deployments: Ray keeps the replicas of an equal one."""

import pytest

from service.serving.ray import groups
from service.serving.ray.groups import version_of

TABLES = {"models": {"vqa": {"family": "fake"}}, "queue": {"ageing_s": 1.0}}


def test_equal_settings_keep_their_version():
    """Whatever the order of the tables."""
    before = version_of(TABLES)

    assert before == version_of(dict(reversed(TABLES.items())), before)


@pytest.mark.parametrize(
    "before", ["", version_of({"models": {"vqa": {"family": "clip"}}})], ids=["none", "another"]
)
def test_other_settings_and_what_failed_get_a_version_that_there_was_never(before):
    """Ray would take what failed for deployed."""
    assert 3 == len({before, version_of(TABLES, before), version_of(TABLES, before)})


def test_another_version_of_the_service_replaces_replicas(monkeypatch):
    """Their code is another's."""
    before = version_of(TABLES)
    monkeypatch.setattr(groups, "__version__", "another")

    assert before != version_of(TABLES, before)
