"""Rubrics: a question and the meaning of each grade.  Each is a TOML file in this folder."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.core.fields import SLOT, Prompt, Strict, TextOrTemplate
from service.metrics.common.contract import Beside

GRADES = 5
Labels = Literal["1-5", "A-E"]
VALUES: Mapping[Labels, Mapping[str, int]] = {
    "1-5": {str(value): value for value in range(1, GRADES + 1)},
    "A-E": {letter: GRADES - place for place, letter in enumerate("ABCDE")},
}
KIND: Mapping[Labels, str] = {"1-5": "digit", "A-E": "letter"}


class Rubric(Strict):
    """
    One rubric.

    Attributes:
        paper: its source.
        question: to the model; `{}` is the prompt.
        grades: the meaning of each grade, the worst first.
        pictures: the introduction of each image, in order; `{}` is the number of a reference.  Empty for the
            image alone, which needs no introduction.
    """

    paper: Prompt
    question: TextOrTemplate
    grades: Annotated[list[Prompt], Field(min_length=GRADES, max_length=GRADES)]
    pictures: dict[Beside | Literal["image"], Prompt] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _image_last(self) -> Self:
        if self.pictures and [*self.pictures][-1] != "image":
            raise ValueError("the last of the pictures must be the image, which the question is about")
        return self

    @property
    def uses(self) -> tuple[Beside, ...]:
        """The other images that the model gets."""
        return tuple(name for name in self.pictures if name != "image")

    def text(self, prompt: str, labels: Labels) -> str:
        """Return the question, the meaning of each label, the best first, and how to answer."""
        best_first = sorted(VALUES[labels].items(), key=lambda pair: -pair[1])
        meanings = [f"{label}: {self.grades[value - 1]}" for label, value in best_first]
        how = f"Answer with one {KIND[labels]} only."
        return "\n".join([self.question.strip().replace(SLOT, prompt), *meanings, how])


def read(name: str, text: str) -> Rubric:
    """Parse a rubric file.  Raises `ValueError` with its *name*."""
    try:
        return Rubric.model_validate(tomllib.loads(text))
    except ValueError as exc:  # of TOML or pydantic
        raise ValueError(f"the rubric {name}: {exc}") from exc


def rubrics() -> dict[str, Rubric]:
    """Return all rubrics by the names of their files."""
    found = {file.name: file for file in files(__package__).iterdir()}
    return {
        stem: read(stem, found[name].read_text(encoding="utf-8"))
        for name in sorted(found)
        if (stem := name.removesuffix(".toml")) != name
    }


RUBRICS = rubrics()
