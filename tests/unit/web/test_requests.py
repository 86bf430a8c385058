"""The types of requests."""

from pathlib import Path
from typing import get_args

import jsonschema_rs
from pydantic import BaseModel, ValidationError

from service.core.settings.tree import Settings
from service.metrics.common.registry import configured, metrics
from service.web.wire.types import Requests, requests_with
from tests.support.rubrics import TWO_CALLS


def with_rubrics(*folders: Path) -> Requests:
    """Return the types of requests of a service with the rubrics of *folders*."""
    judge = {"rubrics": [str(folder) for folder in folders]}
    settings = Settings.model_validate({"models": {}, "judge": judge})
    return requests_with(configured(metrics(), settings))


def test_requests_without_options_share_the_defaults():
    """A copy of all metrics' options takes longer than everything else of a small request's validation."""
    wire = requests_with(metrics()).score
    body = {"items": [{"prompt": "a dog", "image": "iVBORw0KGgo="}], "metrics": ["vqascore"]}

    first, second = (wire.model_validate(body, context={}) for _ in range(2))

    assert first.options is second.options


def test_requests_with_options_of_one_metric_share_the_defaults_of_the_others():
    """The options of a metric that a request does not name are not copied either."""
    wire = requests_with(metrics()).score
    body = {"prompt": "a dog", "image": "iVBORw0KGgo=", "options": {"vqascore": {"output": "logit"}}}

    first, second = (wire.model_validate(body, context={}) for _ in range(2))

    assert first.options.judge is second.options.judge


def test_services_with_equal_rubrics_share_the_types_of_requests(tmp_path):
    """Building them takes as long as ten small requests; files with the same content are equal."""
    (tmp_path / "two.toml").write_text(TWO_CALLS)

    assert with_rubrics() is with_rubrics()
    assert with_rubrics(tmp_path) is with_rubrics(tmp_path)


def test_a_rubric_that_was_written_anew_is_the_next_services(tmp_path):
    """The file of a rubric is read at each start."""
    (tmp_path / "two.toml").write_text(TWO_CALLS)
    before = with_rubrics(tmp_path)

    (tmp_path / "two.toml").write_text(f"{TWO_CALLS}\n# A comment does not count.")
    assert with_rubrics(tmp_path) is before

    (tmp_path / "two.toml").write_text(TWO_CALLS.replace("retries = 1", "retries = 0"))
    options = with_rubrics(tmp_path).score.model_fields["options"].get_default(call_default_factory=True)
    assert options.judge.tables["two"].retries == 0


VALUES = (
    *(None, True, -1, 0, 1, 1.5, 10**9, 10**20, "", "a", "\0", " ", "a" * 5000),
    *([], [[]], ["a"], ["a", "a"], [["a"]], [1], [{}], ["a"] * 200, {}, {"a": 1}),
)
IN_WORDS = ("question", "on_deadline")  # no schema can say that a template has places, or what a field needs


def models_in(annotation, seen):
    """Put the models of a type, and those of their fields, into *seen*."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        seen.add(annotation)
        for field in annotation.model_fields.values():
            models_in(field.annotation, seen)
    for argument in get_args(annotation):
        models_in(argument, seen)


def bounds(schema):
    """Yield values at the bounds of a schema and beside them, and those that it lists."""
    match schema:
        case dict():
            yield from (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ()))
            for word in {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} & schema.keys():
                yield from (schema[word] - 1, schema[word], schema[word] + 1)
            for word in {"minLength", "maxLength"} & schema.keys():
                yield from ("a" * max(0, schema[word] + more) for more in (-1, 0, 1))
            for part in schema.values():
                yield from bounds(part)
        case list():
            for part in schema:
                yield from bounds(part)


def takes(model, name, value):
    """Return True if a field of a model takes the value, whatever its other fields are."""
    try:
        model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)
    except ValidationError as exc:
        return all(error["loc"][:1] != (name,) for error in exc.errors())
    return True


def test_a_field_of_a_request_takes_what_its_schema_allows():
    """So schemathesis need not try each field at each of its places, nor an option at each metric."""
    wire = requests_with(metrics())
    models: set[type[BaseModel]] = set()
    for request in (wire.score, wire.rank, wire.compare, wire.decide, wire.questions):
        models_in(request, models)
    wrong = []
    for model in models:
        schema = model.model_json_schema(by_alias=False)
        for name, said in schema["properties"].items():
            allows = jsonschema_rs.validator_for({**said, "$defs": schema.get("$defs", {})}).is_valid
            for value in (*VALUES, *bounds(said)):
                allowed, taken = allows(value), takes(model, name, value)
                if allowed != taken and (taken or name not in IN_WORDS):
                    wrong.append((model.__name__, name, value))

    assert {metric.options for metric in metrics().values()} < models
    assert [] == wrong
