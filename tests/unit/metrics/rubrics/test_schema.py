"""JSON schemas of clients as outputs."""

import pytest

from service.metrics.rubrics.schema import outputs_of

PROPERTIES = {
    "fit": {"type": "integer", "minimum": 0, "maximum": 10, "description": "how well it fits"},
    "level": {"type": "integer", "enum": [1, 2, 3]},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "any": {"type": "number"},
    "Text quality": {"type": "string", "enum": ["bad", "good"]},
    "why": {"type": "string", "title": "Why"},
}


def schema(properties, **more):
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
        **more,
    }


def test_each_property_is_an_output_with_its_answers():
    found = outputs_of(schema(PROPERTIES))

    assert {
        "fit": "an integer from 0 to 10",
        "level": "an integer from 1 to 3",
        "share": "a number from 0 to 1",
        "any": "a number",
        "Text quality": "one of bad, good",
        "why": "a text of one line",
    } == {name: output.wanted for name, output in found.items()}
    open_ended = schema({f"p{n}": {"type": "string"} for n in range(16)})
    del open_ended["additionalProperties"]
    assert 16 == len(outputs_of(open_ended))


@pytest.mark.parametrize(
    "given",
    [
        {"type": "integer"},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "enum": [1, 3]},
        {"type": "integer", "enum": [True, 2]},
        {"type": "integer", "enum": [0]},
        {"type": "integer", "enum": []},
        {"type": "integer", "enum": [3, 2, 1]},
        {"type": "integer", "enum": ["1", "2"]},
        {"type": "integer", "enum": [{}, {}]},
        {"type": "integer", "enum": [0, 1e8]},
        {"type": "integer", "enum": [0, 10**18]},
        {"type": "integer", "enum": [*range(600_000)]},
        {"type": "integer", "minimum": True, "maximum": 5},
        {"type": "integer", "minimum": None, "maximum": 5},
        {"type": "number", "minimum": None, "maximum": 5},
        {"type": "number", "minimum": float("-inf"), "maximum": 5},
        {"type": "string", "enum": 5},
        {"type": "string", "enum": [5, 6]},
        {"type": "number", "minimum": 0},
        {"type": "number", "maximum": 1},
        {"type": "number", "enum": [1]},
        {"type": "boolean"},
        {"type": "array"},
        {"type": ["integer", "null"]},
        {"$ref": "#/x"},
        {},
        5,
    ],
)
def test_a_property_whose_answers_could_not_be_checked_is_refused_by_name(given):
    with pytest.raises(ValueError, match=r"^a: (must be an integer|the keyword \$ref)"):
        outputs_of(schema({"a": given}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "must be of an object"),
        ({"type": "array"}, "must be of an object"),
        (schema({}), "1 to 16 properties"),
        (schema({f"p{n}": {"type": "string"} for n in range(17)}), "1 to 16 properties"),
        (schema({str(n): 5 for n in range(100_000)}), "1 to 16 properties"),
        ({"type": "object", "properties": [], "required": []}, "1 to 16 properties"),
        (schema(PROPERTIES, required=["fit"]), "all properties must be required"),
        (schema({"a": {"type": "string"}}, required=5), "all properties must be required"),
        (schema({"a": {"type": "string"}}, required="a"), "all properties must be required"),
        (schema({"a": {"type": "string"}}, required=[["a"]]), "all properties must be required"),
        (schema({"a": {"type": "string"}}, required=[{}]), "all properties must be required"),
        (schema({"a": {"type": "string"}}, title=[[]]), "title: Input should be a valid string"),
        (schema({"a": {"type": "string", "title": [[]]}}), "a: title: Input should be a valid string"),
        (schema({"a": {"type": "integer", "minimum": 0, "maximum": 10**18}}), "a: range: grades are at most"),
        (schema(PROPERTIES, additionalProperties=0), "additionalProperties must be false"),
        (schema(PROPERTIES, additionalProperties=True), "additionalProperties must be false"),
        (schema(PROPERTIES, anyOf=[]), "the keyword anyOf is not supported"),
        (schema({"a": {"type": "string", "pattern": "x"}}), "a: the keyword pattern is not supported"),
        (schema({"a": {"type": "string", "enum": ["x"]}}), "a: labels: there must be 2 to 101"),
        (schema({"a": {"type": "integer", "minimum": 0, "maximum": 1000}}), "a: range: grades are at most"),
        (schema(PROPERTIES, description="x" * 65_536), "more than 65536 bytes"),
    ],
)
def test_a_schema_of_another_form_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        outputs_of(given)
