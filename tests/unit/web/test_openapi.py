"""The OpenAPI document says what the service does: limits, headers, keys, and what is in an answer."""

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from service.core.fields import Prompt, Template, TextOrTemplate

TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("{} \t\n\x00\x1c\x85\u3000\ufeff")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "all_said"),
    [(Prompt, True), (Template, False), (TextOrTemplate, False)],
    ids=["prompt", "template", "either"],
)
def test_a_pattern_and_its_validator_agree_on_every_text(kind, all_said):
    """The validator speaks to people, the pattern to machines; what is said in words only the one checks."""
    adapter = TypeAdapter(kind)
    schema = jsonschema_rs.validator_for(adapter.json_schema())

    @settings(derandomize=True, max_examples=1000, deadline=None, database=None)
    @given(TEXTS)
    def agree(text):
        try:
            adapter.validate_python(text)
        except ValidationError:
            assert not (all_said and schema.is_valid(text))
        else:
            assert schema.is_valid(text)

    agree()
