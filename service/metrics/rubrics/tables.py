"""Options with a table, such as a rubric: one of the operator's files by its name, or the request's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, cast

from pydantic import (
    ConfigDict,
    Discriminator,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    create_model,
    field_validator,
    model_serializer,
)

from service.core.fields import branch
from service.metrics.common.contract import MetricOptions

NONE_ABSENT: Mapping[str, str] = MappingProxyType({})


class RubricTable(Protocol):
    """The content of a file of the operator, or of a request."""

    @property
    def digest(self) -> str:
        """`sha256:` and the hash of all fields."""


def list_names(schema: dict[str, Any], options: "type[TableOptions]") -> None:
    """List the names of the tables in the JSON schema of the options."""
    field = schema["properties"][options.option]
    by_name = next((form for form in field.get("oneOf", ()) if form.get("type") == "string"), field)
    by_name["enum"] = [*options.tables]


class TableOptions(MetricOptions):
    """
    Options of which one is a table.

    Attributes:
        option: the name of that option.
        kind: of the tables.
        tables: those of the service, by name.
        absent: why others are not served, by name.
        inline: a request may bring a table.
    """

    model_config = ConfigDict(json_schema_extra=list_names)
    option: ClassVar[str]
    kind: ClassVar[type]
    tables: ClassVar[Mapping[str, Any]]
    absent: ClassVar[Mapping[str, str]] = NONE_ABSENT
    inline: ClassVar[bool] = False

    @field_validator("*", mode="before")
    @classmethod
    def _may_be_a_table(cls, given: Any, info: ValidationInfo) -> Any:
        if info.field_name == cls.option and isinstance(given, dict) and not cls.inline:
            raise ValueError(f"{cls.option}s of a request are off in the settings; name one of the service")
        return given

    @field_validator("*")
    @classmethod
    def _known(cls, given: Any, info: ValidationInfo) -> Any:
        by_name = info.field_name == cls.option and isinstance(given, str)
        return cls._name_in(given) if by_name else given

    @classmethod
    def _name_in(cls, given: str) -> str:
        """Return the name in `NAME` or `NAME@DIGEST`.  Raises `ValueError` if it or the digest is unknown."""
        name, at, digest = given.partition("@")
        if name in cls.absent:
            raise ValueError(f"{name} is not served: {cls.absent[name]}")
        if name not in cls.tables:
            raise ValueError(f"must be one of {', '.join(cls.tables)}")
        if at and digest != cls.tables[name].digest:
            raise ValueError(f"{name} has another digest here: {cls.tables[name].digest}")
        return name

    @model_serializer(mode="wrap")
    def _with_the_digest(self, fields: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        shown = fields(self)
        if self.option in shown:
            pinned = self._is_named and info.mode == "json"
            shown[self.option] = f"{self.name}@{self.table.digest}" if pinned else self.name
        return shown

    @property
    def _is_named(self) -> bool:
        return isinstance(getattr(self, self.option), str)

    @property
    def table(self) -> Any:
        """The table."""
        given = getattr(self, self.option)
        return self.tables[given] if self._is_named else given

    @property
    def name(self) -> str:
        """The name of the table; of a request's own the digest."""
        name: str = getattr(self, self.option) if self._is_named else self.table.digest
        return name


@dataclass(frozen=True)
class Served:
    """Tables by name, equal to others with the same names and digests in the same order."""

    digests: tuple[tuple[str, str], ...]
    tables: Mapping[str, RubricTable] = field(compare=False)


T = TypeVar("T", bound=TableOptions)


def with_tables(
    options: type[T],
    tables: Mapping[str, RubricTable],
    default: str,
    *,
    inline: bool,
    absent: Mapping[str, str] = NONE_ABSENT,
) -> type[T]:
    """
    Return *options* where there are these tables; services with the same ones share them.

    Args:
        default: the name of one of them.
        others: attributes of `TableOptions`.
    """
    served = Served(tuple((name, table.digest) for name, table in tables.items()), tables)
    return cast(type[T], _made(options, served, default, inline, tuple(absent.items())))


# Types of requests with equal ones are shared, too: building them takes as long as ten small requests.
@lru_cache(maxsize=16)
def _made(
    options: type[TableOptions],
    served: Served,
    default: str,
    inline: bool,
    absent: tuple[tuple[str, str], ...],
) -> type[TableOptions]:
    """Return the options of `with_tables`."""
    kind: Any = options.kind
    by_name_or_table = Annotated[
        Annotated[str, branch("<name>")] | Annotated[kind, branch("<table>")], Discriminator(form_of)
    ]
    by_name: Any = (by_name_or_table if inline else str, default)
    made: Any = create_model(
        options.__name__, __base__=options, __doc__=options.__doc__, **{options.option: by_name}
    )
    made.tables, made.absent, made.inline = served.tables, dict(absent), inline
    return cast(type[TableOptions], made)


def form_of(given: Any) -> str:
    """Return the form in which a request gives its table: a name or a table."""
    return "<name>" if isinstance(given, str) else "<table>"
