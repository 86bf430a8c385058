"""
Tasks as in GenEval's metadata: the objects that an image should show, their number, colours and positions.

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
    """Convert JSON's list of a relation and an index."""
    return tuple(value) if isinstance(value, list) else value


class Clause(Strict):
    """A number of objects of a class."""

    name: ClassName = Field(alias="class")
    count: Count


class Include(Clause):
    """
    Objects that the image should show.

    Attributes:
        count: the least number.
        color: of that many objects, those with the highest confidence.
        position: relative to the objects of an earlier clause (its number, from 0).
    """

    color: Colour | None = None
    position: Annotated[tuple[Relation, Index], BeforeValidator(as_tuple)] | None = None


class Exclude(Clause):
    """Objects of which there should be fewer than `count`."""


class Task(Strict):
    """
    The objects that an image should show, and those that it should not.

    Attributes:
        tag: one of GenEval's six tasks.
    """

    tag: Tag
    include: list[Include]
    exclude: list[Exclude] = Field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """The distinct classes of all clauses."""
        clauses: Sequence[Clause] = [*self.include, *self.exclude]
        return [*dict.fromkeys(clause.name for clause in clauses)]

    def faults(self) -> Iterator[str]:
        """Yield faults of the clauses as a whole."""
        if not self.include:
            yield "include has no clause"
        for number, clause in enumerate(self.include):
            if clause.position and (target := clause.position[1]) >= number:
                yield f"include[{number}].position must name an earlier clause, and names {target}"


def check(task: Task, where: str) -> Task:
    """Return *task*.  Raises `NoTask` if its clauses contradict each other."""
    for fault in task.faults():
        raise NoTask(f"{where}.{fault}")
    return task
