"""JSON schemas of answers, as clients of OpenAI's format send them, as outputs."""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from service.core.fields import Strict, Whole, few
from service.metrics.rubrics.form import MAX_OUTPUTS
from service.metrics.rubrics.output import MAX_GRADES, Finite, Output
from service.metrics.rubrics.prompt_files import MAX_BYTES

FORMS = (
    "must be an integer with minimum and maximum or with an enum of all integers between two, a number with "
    "both or neither, or a string with an enum or without"
)
Annotation = Annotated[str, StringConstraints(max_length=MAX_BYTES)]


class Property(Strict):
    """The schema of one property."""

    title: Annotation | None = None
    description: Annotation | None = None
    type: Literal["integer", "number", "string"]
    enum: Annotated[list[Whole | Annotation], Field(max_length=MAX_GRADES)] | None = None
    minimum: Finite | None = None
    maximum: Finite | None = None

    @model_validator(mode="after")
    def _can_be_checked(self) -> Self:
        keywords = {name for name in ("enum", "minimum", "maximum") if getattr(self, name) is not None}
        possible: dict[str, list[set[str]]] = {
            "integer": [{"enum"}, {"minimum", "maximum"}],
            "number": [set(), {"minimum", "maximum"}],
            "string": [set(), {"enum"}],
        }
        kind = str if self.type == "string" else int
        values = self.enum or []
        if keywords not in possible[self.type] or not all(isinstance(each, kind) for each in values):
            raise ValueError(FORMS)
        if self.type == "integer" and self.enum is not None and not is_range(values):
            raise ValueError(FORMS)
        return self

    def output(self) -> Output:
        """Return the output with the same answers.  Raises `ValidationError`."""
        fields: dict[str, Any]
        if self.type == "string":
            fields = {"kind": "text"} if self.enum is None else {"labels": self.enum}
        elif self.enum is not None:
            fields = {"range": [self.enum[0], self.enum[-1]]}
        else:
            fields = {} if self.minimum is None else {"range": [self.minimum, self.maximum]}
            fields |= {"kind": "number"} if self.type == "number" else {}
        return Output.model_validate(fields)


class Schema(Strict):
    """The schema of an object whose properties are all required."""

    title: Annotation | None = None
    description: Annotation | None = None
    type: Literal["object"]
    properties: Annotated[dict[str, Property], Field(min_length=1, max_length=MAX_OUTPUTS), few(MAX_OUTPUTS)]
    required: Annotated[list[str], Field(max_length=MAX_OUTPUTS)] = Field([])
    more: bool = Field(False, alias="additionalProperties")

    @model_validator(mode="after")
    def _requires_all(self) -> Self:
        if set(self.required) != self.properties.keys():
            raise ValueError(PLAIN_REASONS["required"])
        if self.more:
            raise ValueError(PLAIN_REASONS["additionalProperties"])
        return self


PLAIN_REASONS = {  # faults of the object itself get these words instead of pydantic's
    "type": "the schema must be of an object",
    "properties": f"the schema must have 1 to {MAX_OUTPUTS} properties",
    "required": "all properties must be required",
    "additionalProperties": "additionalProperties must be false",
}


def outputs_of(schema: Any) -> dict[str, Output]:
    """
    Return the output of each property of an object, which are all required.

    Raises:
        ValueError: the schema has another form, whose answers could not be checked; names the property.
    """
    try:
        properties = Schema.model_validate(schema).properties
    except ValidationError as exc:
        raise ValueError(said(exc)) from exc
    if len(json.dumps(schema)) > MAX_BYTES:
        raise ValueError(f"the schema has more than {MAX_BYTES} bytes")
    outputs: dict[str, Output] = {}
    for name, each in properties.items():
        try:
            outputs[name] = each.output()
        except ValidationError as exc:
            raise ValueError(f"{name}: {exc.errors()[0]['msg'].removeprefix('Value error, ')}") from exc
    return outputs


def said(refusal: ValidationError) -> str:
    """Return the sentence about the first fault of a schema; an unknown keyword may explain the others."""
    errors = refusal.errors(include_url=False, include_input=False)
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    *_, last = place = ["", *map(str, error["loc"])]
    message = error["msg"].removeprefix("Value error, ")
    of_property = place[1:2] == ["properties"] and len(place) > 2
    prefix = f"{place[2]}: " if of_property else ""
    if error["type"] == "extra_forbidden":
        return f"{prefix}the keyword {last} is not supported"
    if of_property:
        return f"{prefix}{f'{last}: {message}' if last in ('title', 'description') else FORMS}"
    if len(place) == 1:
        return message if error["type"] == "value_error" else PLAIN_REASONS["type"]
    return PLAIN_REASONS.get(place[1], f"{place[1]}: {message}")


def is_range(grades: list[Any]) -> bool:
    """Return whether these are all integers between two, in order."""
    return len(grades) > 1 and grades == [*range(grades[0], grades[0] + len(grades))]
