"""
What a picture should show, as GenEval's metadata say it: objects, their number, colours and places.

The field names are those of `evaluation_metadata.jsonl`.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from service.core.errors import NoTask
from service.core.fields import CLEAN, WHOLE, Strict, clean, schema_keywords

Tag = Literal["single_object", "two_object", "counting", "colors", "position", "color_attr"]
Colour = Literal["red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white"]
Relation = Literal["left of", "right of", "above", "below"]

MAX_CLAUSES = 16
MAX_COUNT = 100

ClassName = Annotated[
    str, Field(min_length=1, max_length=64), AfterValidator(clean), schema_keywords(pattern=CLEAN)
]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT), WHOLE]
Index = Annotated[int, Field(ge=0, lt=MAX_CLAUSES), WHOLE]


def as_tuple(value: Any) -> Any:
    """JSON's list of a relation and an index."""
    return tuple(value) if isinstance(value, list) else value


class Clause(Strict):
    """So many objects of a class."""

    name: ClassName = Field(alias="class")
    count: Count


class Include(Clause):
    """
    Objects that there should be.

    Attributes:
        count: at least so many.
        color: of so many of them, all the surest ones.
        position: where they are, and from the objects of which earlier clause (its number, from 0).
    """

    color: Colour | None = None
    position: Annotated[tuple[Relation, Index], BeforeValidator(as_tuple)] | None = None


class Exclude(Clause):
    """Objects of which there should be fewer than *count*."""


class Task(Strict):
    """
    What a picture should show: all that is included, and nothing that is excluded.

    Attributes:
        tag: which of GenEval's six tasks it is.
    """

    tag: Tag
    include: list[Include]
    exclude: list[Exclude] = Field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """Those that any clause names, each once."""
        clauses: Sequence[Clause] = [*self.include, *self.exclude]
        return [*dict.fromkeys(clause.name for clause in clauses)]

    def faults(self) -> Iterator[str]:
        """What is wrong with its clauses taken together."""
        if not self.include:
            yield "include has no clause"
        for number, clause in enumerate(self.include):
            if clause.position and (target := clause.position[1]) >= number:
                yield f"include[{number}].position must name an earlier clause, and names {target}"


def check(task: Task, where: str) -> Task:
    """*task* itself.  Raises `NoTask` where its clauses make no sense together."""
    for fault in task.faults():
        raise NoTask(f"{where}.{fault}")
    return task
