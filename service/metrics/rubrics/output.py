"""Outputs of a rubric: what a model answers, in which words, and what each answer counts."""

from collections.abc import Iterator, Mapping
from math import inf
from string import ascii_uppercase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from service.core.fields import Prompt, Strict, few, filled, of_one_line

MAX_GRADES = 101  # grades of one output
MAX_GRADE = 1_000_000  # largest number that is a grade
YES_NO = {"yes": 1.0, "no": 0.0}

Finite = Annotated[float, Field(allow_inf_nan=False)]
Label = Annotated[str, StringConstraints(max_length=64), AfterValidator(filled), AfterValidator(of_one_line)]
OutputKind = Literal["grade", "labels", "yes_no", "number", "text"]


class Output(Strict):
    """
    One named output.

    Attributes:
        range: the least and the largest grade, two integers; with the kind `number`, any two numbers.
        labels: the number that each label counts; of a list the first counts 0, the next 1, and so on.
        kind: `yes_no`, which counts 1 or 0; `number`; or `text`, such as a reason, which no formula uses.
        meaning: what is graded, for the model.
        grades: the meaning of each grade, the least first.
        title: its name in an answer; by default that of the table.
    """

    range: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None = None
    labels: Annotated[
        list[Label] | dict[Label, Finite] | None, Field(max_length=MAX_GRADES), few(MAX_GRADES)
    ] = None
    kind: Literal["yes_no", "number", "text"] | None = None
    meaning: Prompt | None = None
    grades: Annotated[list[Prompt], Field(max_length=MAX_GRADES)] | None = None
    title: Label | None = None

    @model_validator(mode="after")
    def _of_one_form(self) -> Self:
        forms = (self.range is not None and self.kind != "number", self.labels is not None, bool(self.kind))
        if sum(forms) != 1:
            raise ValueError("give one of range, labels and kind; a number may have a range too")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError("range: the first number must be the smaller one")
        if self.labels is not None and not 2 <= len(set(self.labels)) == len(self.labels) <= MAX_GRADES:
            raise ValueError(f"labels: there must be 2 to {MAX_GRADES} different ones")
        if self.form == "grade":
            low, high = map(float, self.range or ())
            whole = low.is_integer() and high.is_integer()
            if not whole or high - low >= MAX_GRADES or max(-low, high) > MAX_GRADE:
                raise ValueError(
                    f"range: grades are at most {MAX_GRADES} integers from {-MAX_GRADE} to {MAX_GRADE}"
                )
        if self.grades is not None and (self.form != "grade" or len(self.grades) != len(self.values)):
            raise ValueError("grades: there must be one for each integer of the range")
        return self

    @property
    def form(self) -> OutputKind:
        """The kind of its answers."""
        if self.kind:
            return self.kind
        return "grade" if self.range else "labels"

    @property
    def values(self) -> dict[str, float]:
        """The number that each possible answer counts; empty for numbers and texts."""
        match self.form:
            case "grade":
                low, high = map(int, self.range or ())
                return {str(value): float(value) for value in range(low, high + 1)}
            case "labels" if isinstance(self.labels, dict):
                return dict(self.labels)
            case "labels":
                return {label: float(number) for number, label in enumerate(self.labels or ())}
            case "yes_no":
                return dict(YES_NO)
        return {}

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest number that an answer may count."""
        if values := self.values.values():
            return min(values), max(values)
        low, high = self.range or (-inf, inf)
        return low, high

    def counts(self, answer: Any) -> float:
        """Return the number that a parsed answer counts."""
        return self.values[str(answer)] if self.values else float(answer)

    def symbols(self, letters: bool = False) -> dict[str, str]:
        """
        Return the answer that each symbol of one token stands for; empty if there are too many answers.

        Grades from 0 to 9 are digits, unless *letters* is true.  Other answers are letters, of which A is the
        best.
        """
        values = self.values
        if self.form == "yes_no":
            return {answer.capitalize(): answer for answer in values}
        if self.form == "grade" and not letters and all(len(digit) == 1 for digit in values):
            return {digit: digit for digit in values}
        if len(values) > len(ascii_uppercase):
            return {}
        best_first = sorted(values, key=lambda answer: -values[answer])
        return dict(zip(ascii_uppercase, best_first, strict=False))

    def symbol_lines(self, letters: bool = False) -> Iterator[str]:
        """Yield what each symbol means, the best first, and how to answer."""
        symbols, meanings = self.symbols(letters), self.meanings
        by_letter = "A" in symbols
        if by_letter or self.grades:
            for symbol in symbols if by_letter else reversed(symbols):
                yield f"{symbol}: {meanings[symbols[symbol]]}"
        if self.form == "yes_no":
            yield "Answer with yes or no only."
        elif by_letter:
            yield "Answer with one letter only."
        elif self.grades:
            yield "Answer with one digit only."
        else:
            yield f"Answer with one digit from {min(symbols)} to {max(symbols)} only."

    @property
    def meanings(self) -> dict[str, str]:
        """What each possible answer means: itself, if the file does not say."""
        return dict(zip(self.values, self.grades or self.values, strict=True))

    @property
    def wanted(self) -> str:
        """A description of its answers, in words."""
        match self.form:
            case "grade":
                low, *_, high = self.values
                said = f"an integer from {low} to {high}"
                meant = "; ".join(f"{grade}: {text}" for grade, text in self.meanings.items())
                return f"{said} ({meant})" if self.grades else said
            case "number":
                return f"a number from {self.range[0]:g} to {self.range[1]:g}" if self.range else "a number"
            case "text":
                return "a text of one line"
        return f"one of {', '.join(self.values)}"

    @property
    def json_form(self) -> Mapping[str, Any]:
        """The JSON schema of its answers."""
        match self.form:
            case "grade":
                return {"type": "integer", "enum": [*map(int, self.values)]}
            case "number":
                low, high = self.bounds
                return {"type": "number", **({"minimum": low, "maximum": high} if self.range else {})}
            case "text":
                return {"type": "string"}
        return {"type": "string", "enum": [*self.values]}
