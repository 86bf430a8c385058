"""A reward model behind vLLM's pooling API."""

import pytest

from models.families.registry import families


def test_the_table_is_what_the_model_is_made_of():
    """And a template must have a place for the prompt."""
    family = families()["openai_reward"]
    table = {"family": family.name, "role": "reward", "base_url": "http://127.0.0.1:1/v1", "model": "m"}
    model = family.load("hps", family.settings(**table, id="hpsv3", revision="7", template="<{}>", output=1))

    assert ("hpsv3@7", "<{}>", 1) == (model.info.label, model._template, model._output)
    with pytest.raises(ValueError, match="template"):
        family.settings(**table, template="no place")
    with pytest.raises(ValueError, match="output"):
        family.settings(**table, output=-1)
