"""
Written answers, parsed strictly into outputs.

Nothing is repaired or guessed: an answer has the form of its call, or `AnswerRefused` is raised.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

from service.core.errors import AnswerRefused, Misread
from service.metrics.rubrics.output import Output

MAX_SHOWN_CHARACTERS = 80  # characters of an answer in an error
MAX_NUMBER = sys.float_info.max  # JSON has larger integers
FENCED_BLOCK = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
INTEGER = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,3})?")

Answer = int | float | str
Of = Callable[[Any, str, Output], Answer]
Form = Literal["json", "lines", "token"]


def parsed(text: str, form: Form, outputs: Mapping[str, Output], letters: bool = False) -> dict[str, Answer]:
    """
    Return the answer to each output by name, which is possible for it.

    Args:
        outputs: by name.
        letters: symbols of grades are letters, in an answer of one token.

    Raises:
        AnswerRefused: the text does not have the form, with the reason and the beginning of the text.
    """
    try:
        match form:
            case "json":
                return by_title(object_in(text), outputs, of_json)
            case "lines":
                return by_title(lines_in(text, outputs), outputs, of_text)
            case "token":
                [(name, output)] = outputs.items()
                return {name: of_symbol(text.strip(), output, letters)}
    except AnswerRefused as exc:
        raise AnswerRefused(
            f"{exc.detail}; the answer begins: {text[:MAX_SHOWN_CHARACTERS]!r}", exc.reason
        ) from None


def refuse(reason: Misread, detail: str) -> NoReturn:
    """Raise `AnswerRefused`."""
    raise AnswerRefused(detail, reason)


def by_title(found: Mapping[str, Any], outputs: Mapping[str, Output], of: Of) -> dict[str, Answer]:
    """Return the answers by the names of their outputs, each checked by *of*."""
    titles = {output.title or name: name for name, output in outputs.items()}
    for title in found:
        if title not in titles:
            refuse(Misread.UNKNOWN_OUTPUT, f"there is no output {title[:MAX_SHOWN_CHARACTERS]!r}")
    for title in titles:
        if title not in found:
            refuse(Misread.MISSING_OUTPUT, f"the output {title} is missing")
    return {name: of(found[title], title, outputs[name]) for title, name in titles.items()}


def object_in(text: str) -> dict[str, Any]:
    """Return the only JSON object of a text, which may stand in a block of code."""
    text = text.strip()
    if block := FENCED_BLOCK.fullmatch(text):
        text = block[1].strip()
    decoder = json.JSONDecoder(object_pairs_hook=distinct, parse_constant=constant)
    try:
        found, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        refuse(Misread.NOT_JSON, "it is not JSON")
    if rest := text[end:]:
        if rest.lstrip(" \t\r\n,;").startswith(("{", "[")):
            refuse(Misread.SEVERAL_OBJECTS, "it has more than one JSON object")
        refuse(Misread.TRAILING_TEXT, "there is text after the JSON object")
    if not isinstance(found, dict):
        refuse(Misread.NOT_JSON, "it is not a JSON object")
    return found


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON without a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        refuse(Misread.REPEATED_OUTPUT, "a key is there twice")
    return found


def constant(name: str) -> NoReturn:
    """Refuse NaN and infinity, which are no JSON."""
    refuse(Misread.NOT_A_NUMBER, f"{name} is not a finite number")


def lines_in(text: str, outputs: Mapping[str, Output]) -> dict[str, str]:
    """Return the text behind each title; titles may differ in case."""
    titles = {title.casefold(): title for title in (each.title or name for name, each in outputs.items())}
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, answer = line.partition(":")
        title = titles.get(name.strip().casefold())
        if title is None or not colon:
            reason = Misread.TRAILING_TEXT if len(found) == len(titles) else Misread.UNKNOWN_OUTPUT
            refuse(
                reason, f"the line {line[:MAX_SHOWN_CHARACTERS]!r} is not one of {', '.join(titles.values())}"
            )
        if title in found:
            refuse(Misread.REPEATED_OUTPUT, f"the output {title} is there twice")
        found[title] = answer.strip()
    return found


def of_json(answer: Any, title: str, output: Output) -> Answer:
    """Return an answer of JSON, if it is possible."""
    if output.form in ("grade", "number"):
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            refuse(Misread.NOT_A_NUMBER, not_possible(answer, title, output))
        return number_of(answer, title, output)
    if not isinstance(answer, str):
        refuse(Misread.NOT_A_LABEL, not_possible(answer, title, output))
    return of_text(answer, title, output)


def of_text(answer: str, title: str, output: Output) -> Answer:
    """Return an answer of a text, if it is possible."""
    match output.form:
        case "grade" | "number":
            pattern, number = (INTEGER, int) if output.form == "grade" else (DECIMAL, float)
            if not pattern.fullmatch(answer):
                refuse(Misread.NOT_A_NUMBER, not_possible(answer, title, output))
            return number_of(number(answer), title, output)
        case "text":
            return answer
    label = answer.strip().casefold() if output.form == "yes_no" else answer.strip()
    if label not in output.values:
        refuse(Misread.NOT_A_LABEL, not_possible(answer, title, output))
    return label


def of_symbol(answer: str, output: Output, letters: bool) -> Answer:
    """Return the answer that a symbol stands for."""
    symbols = output.symbols(letters)
    symbol = answer.capitalize() if output.form == "yes_no" else answer
    if symbol not in symbols:
        reason = Misread.OUT_OF_RANGE if INTEGER.fullmatch(answer) else Misread.NOT_A_LABEL
        refuse(reason, f"{repr(answer)[:MAX_SHOWN_CHARACTERS]} is not one of {', '.join(symbols)}")
    meant = symbols[symbol]
    return int(meant) if output.form == "grade" else meant


def number_of(answer: int | float, title: str, output: Output) -> Answer:
    """Return a number within the bounds of its output, a grade as an integer."""
    low, high = output.bounds
    if not max(low, -MAX_NUMBER) <= answer <= min(high, MAX_NUMBER):
        refuse(Misread.OUT_OF_RANGE, not_possible(answer, title, output))
    if output.form == "number":
        return float(answer)
    if answer != int(answer):
        refuse(Misread.NOT_A_NUMBER, not_possible(answer, title, output))
    return int(answer)


def not_possible(answer: Any, title: str, output: Output) -> str:
    """Return the sentence about an answer that its output cannot have."""
    return f"{title}: {repr(answer)[:MAX_SHOWN_CHARACTERS]} is not {output.wanted}"
