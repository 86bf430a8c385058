"""Families of served models load from a table without a server."""

import pytest

from models.core.contract import RemoteModel
from models.core.family import Plan
from models.families.registry import families

REMOTE = {"base_url": "http://127.0.0.1:1/v1", "model": "owner/name", "extra_body": {"a": 1}}


def table(name, **values):
    family = families()[name]
    return family, family.settings(family=name, role=family.role or "vqa", **values)


@pytest.mark.parametrize("name", ["openai", "openai_vlm"])
def test_a_family_of_served_models_asks_no_server(name):
    """Neither to load one nor to plan it; an LLM generates, and answers otherwise when asked again."""
    family, settings = table(name, **REMOTE)
    model = family.load("left", settings)

    assert isinstance(model, RemoteModel)
    assert (family.role, name, "owner/name") == (model.info.role, model.info.family, model.info.label)
    assert (name == "openai") == model.info.generates
    assert not model.info.repeatable
    assert Plan("owner/name", "http://127.0.0.1:1/v1", remote=True) == family.plan("left", settings)
