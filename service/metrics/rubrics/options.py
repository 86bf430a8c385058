"""Options of metrics that grade by rubrics: the rubric, by name or as a table, and texts of the item."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    create_model,
    field_validator,
    model_serializer,
)

from service.core.fields import Name, Prompt, branch, few
from service.metrics.common.contract import MetricOptions
from service.metrics.rubrics.grading import Rating
from service.metrics.rubrics.rubric import FRAMES, Rubric, rubrics_of

MAX_DATA = 16  # texts of an item's data

RUBRICS = rubrics_of(
    file for file in (files("service.metrics") / "rubrics").iterdir() if file.name.endswith(".toml")
)

NONE_ABSENT: Mapping[str, str] = MappingProxyType({})


class Digested(Protocol):
    """The content of a file of the operator, with its hash."""

    @property
    def digest(self) -> str:
        """`sha256:` and the hash."""


def known_name(given: str, known: Mapping[str, Digested], absent: Mapping[str, str] = NONE_ABSENT) -> str:
    """Return the name in `NAME` or `NAME@DIGEST`.  Raises `ValueError` if it or the digest is unknown."""
    name, at, digest = given.partition("@")
    if name in absent:
        raise ValueError(f"{name} is not served: {absent[name]}")
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    if at and digest != known[name].digest:
        raise ValueError(f"{name} has another digest here: {known[name].digest}")
    return name


def list_names(field: dict[str, Any], names: Iterable[str]) -> None:
    """List the *names* in the JSON schema of a field, which may also have the form of a table."""
    by_name = next((form for form in field.get("oneOf", ()) if form.get("type") == "string"), field)
    by_name["enum"] = [*names]


def in_schema(schema: dict[str, Any], options: "type[JudgeOptions]") -> None:
    """List the names of the rubrics in the JSON schema of the options."""
    list_names(schema["properties"]["rubric"], options.rubrics)


class JudgeOptions(MetricOptions):
    """
    Options of grades by a rubric.

    Attributes:
        rubric: its name, also as `NAME@DIGEST`; a table, if the settings allow it.
        labels: of grades that are answered by one token: digits, of which 5 is the best, or letters, of
            which A is.
        data: texts of the item by name, for the slots `{data.NAME}` of a rubric.
        rubrics: those of the service, by name.
        absent: why others are not served, by name.
        inline: a request may bring a table.
    """

    model_config = ConfigDict(json_schema_extra=in_schema)
    rubrics: ClassVar[Mapping[str, Rubric]] = RUBRICS
    absent: ClassVar[Mapping[str, str]] = NONE_ABSENT
    inline: ClassVar[bool] = False

    rubric: str = "semantic_consistency"
    labels: Literal["1-5", "A-E"] = "1-5"
    data: Annotated[dict[Name, Prompt], Field(max_length=MAX_DATA), few(MAX_DATA)] = Field({})

    @field_validator("rubric", mode="before")
    @classmethod
    def _may_be_a_table(cls, rubric: Any) -> Any:
        if isinstance(rubric, dict) and not cls.inline:
            raise ValueError("rubrics of a request are off in the settings; name one of the service")
        return rubric

    @field_validator("rubric")
    @classmethod
    def _known(cls, rubric: Any) -> Any:
        if isinstance(rubric, Rubric):
            return rubric
        return known_name(rubric, cls.rubrics, cls.absent)

    @model_serializer(mode="wrap")
    def _with_the_digest(self, fields: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        shown = fields(self)
        if info.mode == "json" and "rubric" in shown:
            named = isinstance(self.rubric, str)
            shown["rubric"] = f"{self.rubric}@{self.chosen.digest}" if named else self.name
        return shown

    @property
    def chosen(self) -> Rubric:
        """The rubric."""
        given: Any = self.rubric
        return given if isinstance(given, Rubric) else self.rubrics[given]

    @property
    def name(self) -> str:
        """The name of the rubric; of a table its digest."""
        return self.rubric if isinstance(self.rubric, str) else self.chosen.digest

    @property
    def whole(self) -> bool:
        """Whether a call of the rubric gets all frames."""
        return any(FRAMES in call.images for call in self.chosen.calls)

    @property
    def rating(self) -> Rating:
        """How items are graded."""
        return Rating(self.chosen, self.name, self.labels == "A-E", self.data)

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: not every rubric has grades that are answered by one token."""
        calls = self.chosen.calls
        by_label = [call for call in calls if self.chosen.read != "written" or call.form.form == "token"]
        graded = any(output.form == "grade" for call in by_label for output in call.outputs.values())
        found = super().overruled()
        if self.whole:
            found = dict.fromkeys(found, "rubric")
        return found | ({} if graded else {"labels": "rubric"})


def form_of(rubric: Any) -> str:
    """Return the form in which a request gives its rubric: a name or a table."""
    return "<name>" if isinstance(rubric, str) else "<table>"


AnyRubric = Annotated[
    Annotated[str, branch("<name>")] | Annotated[Rubric, branch("<table>")], Discriminator(form_of)
]


def options_with(
    rubrics: Mapping[str, Rubric], inline: bool, default: str, absent: Mapping[str, str] = NONE_ABSENT
) -> type[JudgeOptions]:
    """Return the options where there are these rubrics, and those *absent* for a reason."""
    kind: Any = AnyRubric if inline else str
    options: Any = create_model(
        "JudgeOptions", __base__=JudgeOptions, __doc__=JudgeOptions.__doc__, rubric=(kind, default)
    )
    options.rubrics, options.absent, options.inline = rubrics, absent, inline
    return options
