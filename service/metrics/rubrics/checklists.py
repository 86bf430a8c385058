"""
Checklists: fixed yes/no questions, each with a weight, and the questions that gate others.

A file NAME.toml of an operator has the fields of `Checklist`.  Its questions and weights may stand in copies
of a model's released files in its folder: `questions = "NAME.txt"`, a line each, and `weights = "NAME.json"`.
"""

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from service.core.fields import PLACEHOLDER, WHOLE, Strict, Template, filled, first_fault
from service.core.settings.tree import toml_files
from service.core.text_files import text_of
from service.metrics.common.answers import YES_NO_QUESTION
from service.metrics.rubrics.prompt_files import MAX_BYTES, PROMPT, PromptFile, PromptMissing
from service.metrics.rubrics.rubric import NAME
from service.questions.sets import ID, MAX_CHARACTERS, MAX_QUESTIONS, Question

MAX_WEIGHT = 1e6  # absolute value of a weight
FILE_NAMES = {
    "questions": re.compile(r"[a-z][a-z0-9_]{0,63}\.txt"),
    "weights": re.compile(r"[a-z][a-z0-9_]{0,63}\.json"),
}
WEIGHTS = (
    "must have a list of numbers, or an object of coef, such a list, and intercept, a list of one number"
)


def no_file(value: Any) -> Any:
    """Refuse the name of a file: those of an operator's checklist have been read before."""
    if isinstance(value, str):
        raise ValueError("only checklists in the service's folders name files")
    return value


ChecklistText = Annotated[str, StringConstraints(max_length=MAX_CHARACTERS), AfterValidator(filled)]
Weight = Annotated[float, Field(ge=-MAX_WEIGHT, le=MAX_WEIGHT, allow_inf_nan=False)]
QuestionNumber = Annotated[int, Field(ge=1, le=MAX_QUESTIONS), WHOLE]
GatedQuestions = Annotated[list[QuestionNumber], Field(min_length=2, max_length=MAX_QUESTIONS)]


class Checklist(Strict):
    """
    Yes/no questions with weights.

    Attributes:
        questions: 1 to 64 texts, each with at most one placeholder for the prompt; or the name of a file
            in the folder of this one, each line of which is one.
        weights: of the alignment, if there is one, and of each question that gates no other, in order; or the
            name of a JSON file: a list, or an object of `coef` and `intercept`.
        intercept: added to the sum.
        score: the sum of weight · answer, or its mean over the questions with weights.
        alignment: the first weight is that of the item's `vqascore` with its default options.
        gates: lists of numbers of questions, from 1: if the first is not answered "yes", the others count 0.
        template: of each question, as the model gets it.
        prompt_slot: the text in a question that stands for the prompt.
    """

    questions: Annotated[
        list[ChecklistText], Field(min_length=1, max_length=MAX_QUESTIONS), BeforeValidator(no_file)
    ]
    weights: Annotated[
        list[Weight], Field(min_length=1, max_length=MAX_QUESTIONS + 1), BeforeValidator(no_file)
    ]
    intercept: Weight = 0.0
    score: Literal["sum", "mean"] = "sum"
    alignment: bool = False
    gates: Annotated[list[GatedQuestions], Field(max_length=MAX_QUESTIONS)] = Field([])
    template: Template = YES_NO_QUESTION
    prompt_slot: Annotated[str, StringConstraints(min_length=1, max_length=64)] = PROMPT

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for text, count in Counter(text.strip() for text in self.questions).items():
            if count > 1:
                raise ValueError(f'questions: "{text[:40]}" stands there {count} times')
        for number, text in enumerate(self.questions, 1):
            if text.count(self.prompt_slot) > 1:
                raise ValueError(f"questions: question {number} has {self.prompt_slot} more than once")
        self._check_gates()
        count = len(self.questions) - len(self.gates) + self.alignment
        if count != len(self.weights):
            also = ", and for the alignment" if self.alignment else ""
            raise ValueError(
                f"weights: there are {len(self.weights)}, and {count} are needed: one for each question that"
                f" gates no other{also}"
            )
        least, largest = self.bounds
        if not least < largest:
            raise ValueError("weights: all are 0, or too small for this intercept")
        if self.score == "mean" and (self.alignment or self.intercept):
            raise ValueError("score: a mean has neither alignment nor intercept")
        if self.prompt_slot != PROMPT and not any(self.prompt_slot in text for text in self.questions):
            raise ValueError(f"prompt_slot: no question has {self.prompt_slot}")
        return self

    def _check_gates(self) -> None:
        """Raise `ValueError` for a gate of a question that is not there, or that is a gate itself."""
        firsts = [gate[0] for gate in self.gates]
        for gate, *others in self.gates:
            if firsts.count(gate) > 1:
                raise ValueError(f"gates: two lists begin with question {gate}")
            for number in (gate, *others):
                if number > len(self.questions):
                    raise ValueError(f"gates: there is no question {number}")
            if found := set(others) & set(firsts):
                raise ValueError(f"gates: question {min(found)} gates others, and is gated by {gate}")
            if len(set(others)) < len(others):
                raise ValueError(f"gates: the list of question {gate} names a question twice")

    @cached_property
    def all_questions(self) -> tuple[Question, ...]:
        """The questions in order, numbered from 1; each depends on those that gate it."""
        gated_by: dict[int, list[int]] = {}
        for gate, *others in self.gates:
            for number in others:
                gated_by.setdefault(number, []).append(gate)
        return tuple(
            Question(number, text, depends_on=tuple(gated_by.get(number, ())))
            for number, text in enumerate(self.questions, 1)
        )

    @cached_property
    def factors(self) -> Mapping[int, float]:
        """What the answer of each question is multiplied by in the score, without those that gate others."""
        gates = {gate[0] for gate in self.gates}
        numbers = [question.id for question in self.all_questions if question.id not in gates]
        share = len(numbers) if self.score == "mean" else 1
        weights = self.weights[self.alignment :]
        return {number: weight / share for number, weight in zip(numbers, weights, strict=True)}

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest score."""
        aligned, sizes = self.weights[0] * self.alignment, [*map(abs, self.factors.values())]
        least = fsum((self.intercept, min(0.0, aligned), *(-size for size in sizes)))
        return least, fsum((self.intercept, max(0.0, aligned), *sizes))

    @cached_property
    def digest(self) -> str:
        """`sha256:` and the hash of all fields, with the content of the files that it names."""
        content = json.dumps(self.model_dump(mode="json"), ensure_ascii=False)
        return f"{ID}{hashlib.sha256(content.encode()).hexdigest()}"

    def texts(self, prompt: str) -> list[str]:
        """Return each question about an image of *prompt*, as the model gets it."""
        return [
            self.template.replace(PLACEHOLDER, text.replace(self.prompt_slot, prompt))
            for text in self.questions
        ]


def read_checklist(path: Path) -> tuple[Checklist, list[PromptFile]]:
    """
    Return the checklist in a TOML file, with the files that it names.

    Raises:
        ValueError: one of them cannot be read or used; the message names the file and the field.
    """
    name = path.name.removesuffix(".toml")
    try:
        if not NAME.fullmatch(name):
            raise ValueError(f"a name must match {NAME.pattern}")
        table = tomllib.loads(text_of(path, MAX_BYTES)[0])
        named = {
            field: named_file(path.parent, field, table[field])
            for field in FILE_NAMES
            if isinstance(table.get(field), str)
        }
        if "questions" in named:
            table["questions"] = named["questions"].text.split("\n")  # splitlines() ends one at U+2028, too
        if "weights" in named:
            table |= weights_in(named["weights"], table)
        return Checklist.model_validate(table), [*named.values()]
    except ValidationError as exc:
        raise ValueError(f"{path.name}: {first_fault(exc)}") from exc
    except (OSError, ValueError, RecursionError) as exc:  # the message of a TOML error has the line
        raise ValueError(f"{path.name}: {exc}") from exc


def named_file(folder: Path, field: str, name: str) -> PromptFile:
    """Return the file that a *field* of a checklist names.  Raises `ValueError`."""
    pattern = FILE_NAMES[field]
    if not pattern.fullmatch(name):
        raise ValueError(f"{field}: the name of a file must match {pattern.pattern}")
    try:
        return PromptFile.at(folder / name)
    except PromptMissing as exc:
        raise ValueError(f"{field}: {exc.path} is not there") from exc
    except ValueError as exc:
        raise ValueError(f"{field}: {exc}") from exc


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object.  Raises `ValueError` if a key stands there twice: the first would be ignored."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("has a key twice")
    return found


def weights_in(file: PromptFile, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a JSON file has, `weights` and perhaps `intercept`.  Raises `ValueError`."""
    try:
        match json.loads(file.text, object_pairs_hook=no_key_twice):
            case list(weights):
                return {"weights": weights}
            case {"coef": list(weights), "intercept": [intercept], **others} if not others:
                if "intercept" in table:
                    raise ValueError("has an intercept, and so has the TOML file")
                return {"weights": weights, "intercept": intercept}
        raise ValueError(WEIGHTS)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"weights: {file.path} {exc}") from exc


def checklists_in(folders: Iterable[Path], known: Mapping[str, Checklist]) -> dict[str, Checklist]:
    """Return the *known* checklists after those of folders, by name.  Raises `ValueError`."""
    found: dict[str, Checklist] = {}
    for path in toml_files(folders):
        name = path.name.removesuffix(".toml")
        if name in found or name in known:
            raise ValueError(f"{path.name}: there is another one of that name")
        found[name], _ = read_checklist(path)
    return found | dict(known)
