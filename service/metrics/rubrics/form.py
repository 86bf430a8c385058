"""Forms of written answers: how the outputs are written, and where in the text they stand."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from service.core.fields import Strict, few, filled, of_one_line
from service.metrics.rubrics.output import Label, Output

MAX_OUTPUTS = 16  # outputs of all calls
HEADING = ": "  # it joins the heading above some lines and the name of one of them to a title

FormName = Literal["json", "lines", "value", "token"]
FormText = Annotated[
    str, StringConstraints(max_length=64), AfterValidator(filled), AfterValidator(of_one_line)
]
OutputNames = Annotated[list[str], Field(min_length=1, max_length=MAX_OUTPUTS)]
LINE_FORMS = ("lines", "value")  # forms that can be the end of a longer text
TITLES_OF_LINES = ("numbered", "line_ends")  # fields that only lines have


class AnswerForm(Strict):
    """
    The form of an answer.  All but *form* is for models that were trained to write something around it.

    Attributes:
        form: a JSON object; lines `Title: answer`; the `value` of the only output, without a title; or its
            `token`.
        after: text that stands once; what comes before it is not read.
        tag: name of an XML element that is the whole text, or all of it *after* that.
        final_lines: the last lines are the answer.  Those before are not read, but none may be an answer.
        numbered: a line may begin with the place of its output, `(1)`.
        line_ends: characters, of which one may end a line.
        lists: by title, the outputs whose numbers are one list of the JSON object, in order.
    """

    form: FormName = "json"
    after: FormText | None = None
    tag: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")] | None = None
    final_lines: bool = False
    numbered: bool = False
    line_ends: Annotated[str, StringConstraints(pattern=r"^[.,;]{1,3}$")] | None = None
    lists: Annotated[dict[Label, OutputNames], few(MAX_OUTPUTS)] = Field({})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.form == "token" and len(self.model_fields_set) > 1:
            raise ValueError("one token is the whole answer")
        if self.final_lines and self.form not in LINE_FORMS:
            raise ValueError(f"final_lines: is for the forms {' and '.join(LINE_FORMS)}")
        for name in TITLES_OF_LINES:
            if getattr(self, name) and self.form != "lines":
                raise ValueError(f"{name}: is for the form lines")
        if self.lists and self.form != "json":
            raise ValueError("lists: is for the form json")
        return self

    def check(self, outputs: Mapping[str, Output]) -> None:
        """Raise `ValueError` if answers to *outputs* cannot have this form."""
        titles = [title.casefold() for title in self.titles(outputs).values()]
        if len(set(titles)) < len(titles) or {each.casefold() for each in self.lists} & {*titles}:
            raise ValueError("outputs: two have the same title")
        if self.form == "token" and (
            len(outputs) > 1 or not all(each.symbols() for each in outputs.values())
        ):
            raise ValueError("answer: one token is for a single output of at most 26 possible answers")
        if self.form == "value" and (
            len(outputs) > 1 or any(each.form == "text" for each in outputs.values())
        ):
            raise ValueError("answer: a value is for a single output that counts a number")
        listed = [name for names in self.lists.values() for name in names]
        for name in listed:
            if name not in outputs or outputs[name].form not in ("grade", "number"):
                raise ValueError(f"answer.lists: {name[:40]!r} is no output that is a number")
        if len(set(listed)) < len(listed):
            raise ValueError("answer.lists: an output has two places")

    def titles(self, outputs: Mapping[str, Output]) -> dict[str, str]:
        """Return the title of each output in an answer, by name: `LIST[0]` for the first one of a list."""
        places = {
            name: f"{title}[{place}]"
            for title, names in self.lists.items()
            for place, name in enumerate(names)
        }
        return {name: places.get(name) or output.title or name for name, output in outputs.items()}

    def described(self, outputs: Mapping[str, Output], letters: bool) -> Iterator[str]:
        """Yield the lines that describe the form to a model."""
        if self.form == "token":
            yield from next(iter(outputs.values())).symbol_lines(letters)
            return
        if self.after:
            yield f"First give your reasons, then write {self.after} and then the answer."
        if self.final_lines:
            yield "You may give reasons first. The answer comes last:"
        if self.tag:
            yield f"Put the answer between <{self.tag}> and </{self.tag}>."
        titles = self.titles(outputs)
        match self.form:
            case "value":
                [output] = outputs.values()
                meaning = f" ({output.meaning})" if output.meaning else ""
                yield f"Answer with {output.wanted} only{meaning}."
                return
            case "json":
                yield "Answer with one JSON object only, which has these keys:"
            case "lines":
                yield "Answer with these lines only, each a name, a colon and the answer:"
        for title, names in self.lists.items():
            wanted = ", ".join(described(outputs[name]) for name in names)
            yield f"{json.dumps(title, ensure_ascii=False)}: a list of {len(names)} numbers: [{wanted}]"
        listed, heading = {name for names in self.lists.values() for name in names}, ""
        for name, title in titles.items():
            if name in listed:
                continue
            above, _, below = title.rpartition(HEADING) if self.form == "lines" else ("", "", title)
            if above and above != heading:
                yield f"{above}:"
            heading = above
            shown = json.dumps(title, ensure_ascii=False) if self.form == "json" else below
            yield f"{shown}: {described(outputs[name])}"

    def json_schema(self, outputs: Mapping[str, Output]) -> dict[str, Any] | None:
        """Return the JSON schema of the whole text; None if it is not one object of JSON."""
        if self.form != "json" or self.after or self.tag:
            return None
        parts = {name: dict(output.json_form) for name, output in outputs.items()}
        properties = {}
        for name, title in self.titles(outputs).items():
            listed = next((each for each, names in self.lists.items() if name in names), "")
            if not listed:
                properties[title] = parts[name]
            elif listed not in properties:
                properties[listed] = array([parts[each] for each in self.lists[listed]])
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }


def described(output: Output) -> str:
    """Return what answers an output has, with its meaning."""
    return f"{output.wanted} - {output.meaning}" if output.meaning else output.wanted


def array(forms: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of a list with one number of each form; servers know `items` best."""
    each: dict[str, Any] = {"prefixItems": forms, "items": False}
    if all(form == forms[0] for form in forms):
        each = {"items": forms[0]}
    return {
        "type": "array",
        **each,
        "minItems": len(forms),
        "maxItems": len(forms),
    }


def form_of(answer: FormName | AnswerForm) -> AnswerForm:
    """Return the form of an answer that is given by its name or as a table."""
    return AnswerForm(form=answer) if isinstance(answer, str) else answer
