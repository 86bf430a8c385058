"""
Rubrics: the calls of a model that grades, the named outputs of each call, and the formula of the score.
"""

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, ValidationError, model_validator

from service.core.expression import FUNCTIONS, MAX_CHARACTERS, Formula, NoValueError
from service.core.fields import WHOLE, Prompt, Strict, branch, few, filled, first_fault
from service.core.settings.tree import toml_files
from service.core.text_files import text_of
from service.metrics.common.contract import REFERENCES, SOURCE, Beside
from service.metrics.rubrics.form import MAX_OUTPUTS, AnswerForm, FormName, form_of
from service.metrics.rubrics.output import Output
from service.metrics.rubrics.prompt_files import (
    MAX_BYTES,
    RELEASED_RUBRICS,
    PromptMissing,
    with_instructions,
)

MAX_CALLS = 8
MAX_INSTRUCTIONS = 16_000  # characters of one call
MAX_SAMPLES = 16

NAME = re.compile("[a-z][a-z0-9_]{0,31}")
DATA = "data."
PLACEHOLDERS = re.compile(r"\{(data\.)?([a-z][a-z0-9_]*)\}")
PLACES = ("prompt", "candidate", "frames", "rival", "source", "references")  # placeholders without `data.`

RIVAL: Literal["rival"] = "rival"  # the picture that a rubric compares the candidate with
FRAMES: Literal["frame*"] = "frame*"  # all frames of the candidate, which are shown in one call
Shown = Literal["candidate", "frame*", "rival", "source", "reference*"]
BESIDE: Mapping[str, Beside] = {"source": SOURCE, "reference*": REFERENCES}


def with_known_placeholders(text: str) -> str:
    """Refuse a placeholder that no item can fill."""
    for of_data, name in PLACEHOLDERS.findall(text):
        if not of_data and name not in PLACES:
            there = ", ".join(f"{{{each}}}" for each in PLACES)
            raise ValueError(f"{{{name}}} is no placeholder; there are {there} and {{data.NAME}}")
    return text


def named(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse the name of an output that a formula cannot have."""
    for name in outputs:
        if not NAME.fullmatch(name) or name in FUNCTIONS:
            raise ValueError(f"{name[:40]!r} is no name of an output; it must match {NAME.pattern}")
    return outputs


CallInstructions = Annotated[
    str,
    StringConstraints(max_length=MAX_INSTRUCTIONS),
    AfterValidator(filled),
    AfterValidator(with_known_placeholders),
]
Outputs = Annotated[
    dict[str, Output],
    Field(min_length=1, max_length=MAX_OUTPUTS),
    few(MAX_OUTPUTS),
    AfterValidator(named),
]


def form_given(answer: Any) -> str:
    """Return the way in which a rubric gives the form of an answer: a name or a table."""
    return "<form>" if isinstance(answer, str) else "<form table>"


NamedOrTableForm = Annotated[
    Annotated[FormName, branch("<form>")] | Annotated[AnswerForm, branch("<form table>")],
    Discriminator(form_given),
]


class RubricCall(Strict):
    """
    One call of the model.

    Attributes:
        instructions: the text after the pictures.  `{prompt}` is the item's, `{data.NAME}` a text of its
            option `data`, and `{candidate}`, `{frames}`, `{rival}`, `{source}` and `{references}` are the
            numbers of these pictures.
        images: the pictures in order: `candidate`, which is judged, or `frame*` for all its frames, `rival`,
            which it is compared with, `source`, and `reference*` for all.
        captions: a text before a picture; `{}` is the number of a reference or a frame.
        answer: the form of a written answer, by its name or as a table.
        closing: the end of the text, in place of the description of that form.
        max_tokens: most tokens of a written answer; a longer one is an error.
        outputs: what the model answers, by name.
    """

    instructions: CallInstructions
    images: list[Shown] = Field(["candidate"], min_length=1, max_length=len(get_args(Shown)))
    captions: Annotated[dict[Shown, Prompt], few(len(get_args(Shown)))] = Field({})
    answer: NamedOrTableForm = "json"
    closing: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTIONS)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=8192), WHOLE] = 1024
    outputs: Outputs

    @model_validator(mode="before")
    @classmethod
    def _has_its_text(cls, call: Any) -> Any:
        if isinstance(call, dict) and "prompt_file" in call:
            raise ValueError("prompt_file: is read of rubrics in the service's own folders")
        return call

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if len(set(self.images)) < len(self.images):
            raise ValueError("images: names a picture twice")
        if unseen := [name for name in self.captions if name not in self.images]:
            raise ValueError(f"captions: {unseen[0]} is not among the images")
        named = {name for of_data, name in PLACEHOLDERS.findall(self.instructions) if not of_data}
        if missing := named - {"prompt", *(name.replace("*", "s") for name in self.images)}:
            raise ValueError(f"instructions: {{{min(missing)}}} is not among the images")
        if {"candidate", FRAMES} <= {*self.images}:
            raise ValueError(f"images: {FRAMES} has the candidate")
        self.form.check(self.outputs)
        return self

    @cached_property
    def form(self) -> AnswerForm:
        """The form of a written answer."""
        return form_of(self.answer)

    @property
    def json_form(self) -> dict[str, Any] | None:
        """The JSON schema of the answer; None for another form."""
        return self.form.json_schema(self.outputs)

    @property
    def numbers(self) -> dict[str, Output]:
        """The outputs that count a number, by name."""
        return {name: output for name, output in self.outputs.items() if output.form != "text"}

    @cached_property
    def placeholders(self) -> Mapping[str, int]:
        """How often the instructions have each placeholder, by what stands between its braces."""
        return Counter(of_data + name for of_data, name in PLACEHOLDERS.findall(self.instructions))

    @property
    def data(self) -> set[str]:
        """The names of the item's data that the instructions use."""
        return {each.removeprefix(DATA) for each in self.placeholders if each.startswith(DATA)}

    def length(self, texts: Mapping[str, str]) -> int:
        """Return the characters of the instructions with *texts* filled in, which they are not here."""
        added = (
            count * (len(texts.get(each, "")) - len(each) - 2) for each, count in self.placeholders.items()
        )
        return len(self.instructions.strip()) + sum(added)

    def text(self, filled: str, letters: bool = False) -> str:
        """Return the text for a written answer: the *filled* instructions and the form of the answer."""
        if self.closing is not None:
            return "\n".join(filter(None, (filled, self.closing)))
        return "\n".join((filled, *self.form.described(self.outputs, letters)))

    def label_text(self, filled: str, name: str, letters: bool = False) -> str:
        """Return the text for one output alone, by the probabilities of its symbols."""
        if self.form.form == "token":
            return self.text(filled, letters)
        output = self.outputs[name]
        meaning = f" ({output.meaning})" if output.meaning else ""
        alone = f"Answer for {output.title or name} alone{meaning}."
        return "\n".join((filled, alone, *output.symbol_lines(letters)))


class Rubric(Strict):
    """
    One rubric.

    Attributes:
        paper: its source.
        score: the formula over the outputs of all calls: numbers, `+ - * /`, parentheses, `min`, `max`,
            `sqrt`, `mean`.  Without a finite value, as in a division by 0, it is the error `unanswered`.
        read: by the written answers, by the expected values of the symbols' probabilities, or both, whose
            score is that of the written answers.
        samples: written answers of each call; the score is the mean.
        temperature: of written answers; by default 0, and 1 if there are several samples.
        retries: how often an answer that does not have the form is repeated, with another seed.  At
            temperature 0 many servers write the same text again.
        calls: of the model; their outputs have different names.
    """

    paper: Prompt | None = None
    score: Annotated[str, StringConstraints(max_length=MAX_CHARACTERS)]
    read: Literal["written", "expected", "both"] = "written"
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES), WHOLE] = 1
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    retries: Annotated[int, Field(ge=0, le=1), WHOLE] = 0
    calls: Annotated[list[RubricCall], Field(min_length=1, max_length=MAX_CALLS)]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        names = [name for call in self.calls for name in call.outputs]
        if len(set(names)) < len(names):
            raise ValueError("calls: two have an output of the same name")
        if len(names) > MAX_OUTPUTS:
            raise ValueError(f"calls: all together have at most {MAX_OUTPUTS} outputs")
        if self.read != "written" and (
            unread := [name for name, each in self.numbers.items() if not each.symbols()]
        ):
            raise ValueError(f"read: {unread[0]} has no answers of one token whose probabilities are known")
        if self.read == "expected" and (self.samples, self.retries, self.temperature) != (1, 0, None):
            raise ValueError("read: samples, retries and temperature are for written answers")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError("temperature: several samples at 0 are the same answer")
        least, largest = self.bounds  # a wrong formula raises here
        if not least < largest:
            raise ValueError("score: it is the same for all answers")
        if self.compares and not (isfinite(least) and isfinite(largest)):
            raise ValueError("score: of a rubric with a rival it has a least and a largest value")
        if len(self.canonical) > MAX_BYTES:
            raise ValueError(f"a rubric has at most {MAX_BYTES} bytes")
        return self

    @cached_property
    def outputs(self) -> Mapping[str, Output]:
        """The outputs of all calls, by name."""
        return {name: output for call in self.calls for name, output in call.outputs.items()}

    @cached_property
    def numbers(self) -> Mapping[str, Output]:
        """The outputs of all calls that count a number, by name."""
        return {name: output for call in self.calls for name, output in call.numbers.items()}

    @cached_property
    def formula(self) -> Formula:
        """The formula of the score.  Raises `ValueError` with the name of the field."""
        try:
            return Formula.of(self.score, self.numbers)
        except ValueError as exc:
            raise ValueError(f"score: {exc}") from None

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest score.  Raises `ValueError` with the name of the field."""
        try:
            return self.formula.range({name: output.bounds for name, output in self.numbers.items()})
        except NoValueError as exc:
            raise ValueError(f"score: {exc}") from None

    @cached_property
    def canonical(self) -> bytes:
        """All fields as JSON, with their defaults."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False).encode()

    @cached_property
    def digest(self) -> str:
        """`sha256:` and the hash of all fields.  Comments do not count; the order of outputs does."""
        return f"sha256:{hashlib.sha256(self.canonical).hexdigest()}"

    @property
    def uses(self) -> tuple[Beside, ...]:
        """The other images that some call gets."""
        every = (BESIDE[name] for call in self.calls for name in call.images if name in BESIDE)
        return tuple(dict.fromkeys(every))

    @property
    def compares(self) -> bool:
        """Whether some call gets a rival: a score above the middle of the range prefers the candidate."""
        return any(RIVAL in call.images for call in self.calls)

    @property
    def heat(self) -> float:
        """The temperature of written answers."""
        return float(self.samples > 1) if self.temperature is None else self.temperature


def rubric_of(name: str, text: str, prompts: Path | None = None) -> Rubric:
    """
    Parse a rubric file.

    Args:
        prompts: the folder of prompt files; by default it may name none.

    Raises:
        PromptMissing: a prompt file is not there.
        ValueError: with the *name* of the rubric and the field or the line, as one line.
    """
    try:
        if len(text.encode()) > MAX_BYTES:
            raise ValueError(f"a rubric has at most {MAX_BYTES} bytes")
        table = tomllib.loads(text)
        return Rubric.model_validate(with_instructions(table, prompts) if prompts else table)
    except PromptMissing:
        raise
    except ValidationError as exc:
        raise ValueError(f"the rubric {name}: {first_fault(exc)}") from exc
    except (ValueError, RecursionError) as exc:  # the message of a TOML error has the line
        raise ValueError(f"the rubric {name}: {exc}") from exc


def rubrics_of(
    files: Iterable[Path], taken: Collection[str] = (), prompts: Path | None = None
) -> dict[str, Rubric]:
    """
    Return the rubrics of TOML files, by the names of the files.

    Args:
        prompts: as of `rubric_of`.

    Raises:
        ValueError: a file is no rubric, or its name is not valid or *taken*, or a prompt file is not there.
    """
    found: dict[str, Rubric] = {}
    for file in files:
        name = file.name.removesuffix(".toml")
        if not NAME.fullmatch(name):
            raise ValueError(f"the rubric {file.name}: a name must match {NAME.pattern}")
        if name in taken or name in found:
            raise ValueError(f"the rubric {name}: there is another one of that name")
        try:
            found[name] = rubric_of(name, text_of(file, MAX_BYTES)[0], prompts)
        except PromptMissing as exc:
            raise ValueError(f"the rubric {name}: {exc}") from exc
    return found


def released_rubrics(prompts: Path) -> tuple[dict[str, Rubric], dict[str, str]]:
    """
    Return the rubrics of released models whose prompt files are there, and the reasons why others are not.

    Raises `ValueError` for a prompt file that cannot be used.
    """
    found, absent = dict[str, Rubric](), dict[str, str]()
    for name, text in RELEASED_RUBRICS.items():
        try:
            found[name] = rubric_of(name, text, prompts)
        except PromptMissing as exc:
            absent[name] = str(exc)
    return found, absent


def rubrics_in(
    folders: Iterable[Path], known: Mapping[str, Rubric], prompts: Path | None = None
) -> dict[str, Rubric]:
    """Return the *known* rubrics and those of folders.  Raises `ValueError` or `OSError`."""
    return dict(known) | rubrics_of(toml_files(folders), {*known, *RELEASED_RUBRICS}, prompts)
