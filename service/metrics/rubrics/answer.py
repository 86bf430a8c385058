"""
Written answers, parsed strictly into outputs.

Nothing is repaired or guessed: an answer has the form of its call, or `AnswerRefused` is raised.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from service.core.errors import AnswerRefused, Misread
from service.metrics.rubrics.form import HEADING, AnswerForm, FormName, form_of
from service.metrics.rubrics.output import Output

MAX_SHOWN_CHARACTERS = 80  # characters of an answer in an error
MAX_NUMBER = sys.float_info.max  # JSON has larger integers
FENCED_BLOCK = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
INTEGER = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(
    r"-?[0-9]{1,15}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?"
)  # models write all digits of a float
PLACE = re.compile(r"\(([0-9]{1,2})\)\s*")

OutputValue = int | float | str
Of = Callable[[Any, str, Output], OutputValue]


def parsed(
    text: str, form: FormName | AnswerForm, outputs: Mapping[str, Output], letters: bool = False
) -> dict[str, OutputValue]:
    """
    Return the answer to each output by name, which is possible for it.

    Args:
        outputs: by name.
        letters: symbols of grades are letters, in an answer of one token.

    Raises:
        AnswerRefused: the text does not have the form, with the reason and the beginning of the text.
    """
    form = form_of(form)
    titles = {title: name for name, title in form.titles(outputs).items()}
    try:
        answer = located(text, form)
        match form.form:
            case "json":
                found = numbers_of_lists(object_in(answer), form, titles)
                return by_title(found, titles, outputs, of_json)
            case "lines":
                return by_title(lines_in(answer, form, titles, outputs), titles, outputs, of_text)
            case "value":
                [(title, name)] = titles.items()
                return {name: value_in(answer, form, title, outputs[name])}
            case "token":
                [(name, output)] = outputs.items()
                return {name: of_symbol(answer.strip(), output, letters)}
    except AnswerRefused as exc:
        raise AnswerRefused(
            f"{exc.detail}; the answer begins: {text[:MAX_SHOWN_CHARACTERS]!r}", exc.reason
        ) from None


def refuse(reason: Misread, detail: str) -> NoReturn:
    """Raise `AnswerRefused`."""
    raise AnswerRefused(detail, reason)


def located(text: str, form: AnswerForm) -> str:
    """Return the part of a text that is the answer, by the marks that must be there once."""
    if form.after:
        text = text[once(text, form.after) + len(form.after) :]
    if not form.tag:
        return text
    opening, closing = f"<{form.tag}>", f"</{form.tag}>"
    start, end = once(text, opening), once(text, closing)
    if text[:start].strip() or text[end + len(closing) :].strip():
        refuse(Misread.TRAILING_TEXT, f"there is text outside {opening}")
    return text[start + len(opening) : end]


def once(text: str, mark: str) -> int:
    """Return where *mark* begins, which must be there once."""
    match text.count(mark):
        case 0:
            refuse(Misread.MISSING_MARK, f"{mark} is missing")
        case 1:
            return text.index(mark)
    refuse(Misread.REPEATED_MARK, f"{mark} is there more than once")


def by_title(
    found: Mapping[str, Any], titles: Mapping[str, str], outputs: Mapping[str, Output], of: Of
) -> dict[str, OutputValue]:
    """Return the answers by the names of their outputs, each checked by *of*."""
    for title in found:
        if title not in titles:
            refuse(Misread.UNKNOWN_OUTPUT, f"there is no output {title[:MAX_SHOWN_CHARACTERS]!r}")
    for title in titles:
        if title not in found:
            refuse(Misread.MISSING_OUTPUT, f"the output {title} is missing")
    return {name: of(found[title], title, outputs[name]) for title, name in titles.items()}


def numbers_of_lists(found: Mapping[str, Any], form: AnswerForm, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of an object, with each number of a list by the title of its output."""
    of_lists = {title for title, name in titles.items() if any(name in each for each in form.lists.values())}
    members: dict[str, Any] = {}
    for title, answer in found.items():
        if title in of_lists:
            refuse(Misread.UNKNOWN_OUTPUT, f"{title} is no member of the object")
        if title not in form.lists:
            members[title] = answer
            continue
        size = len(form.lists[title])
        if not isinstance(answer, list):
            shown = repr(answer)[:MAX_SHOWN_CHARACTERS]
            refuse(Misread.NOT_A_NUMBER, f"{title}: {shown} is not a list of {size} numbers")
        if len(answer) != size:
            reason = Misread.MISSING_OUTPUT if len(answer) < size else Misread.UNKNOWN_OUTPUT
            refuse(reason, f"{title}: the list has {len(answer)} numbers, not {size}")
        members |= {f"{title}[{place}]": number for place, number in enumerate(answer)}
    return members


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


class LineRead(NamedTuple):
    """A line of a text: its title, None if it has none; the answer behind it, None in a heading."""

    line: str
    title: str | None
    answer: str | None


def lines_in(
    text: str, form: AnswerForm, titles: Mapping[str, str], outputs: Mapping[str, Output]
) -> dict[str, str]:
    """Return the text behind each title; titles may differ in case."""
    lines = [*filter(None, map(str.strip, text.splitlines()))]
    count = len(titles) + len(headings(titles)) if form.final_lines else len(lines)
    for each in read_lines(lines[: max(0, len(lines) - count)], form, titles):
        if each.title and each.answer is not None and possible(each.answer, outputs[titles[each.title]]):
            refuse(Misread.REPEATED_OUTPUT, f"{each.title} is answered before the last lines")
    found: dict[str, str | None] = {}  # None for a heading
    for line, title, answer in read_lines(lines[max(0, len(lines) - count) :], form, titles):
        if title is None:
            whole = titles.keys() <= found.keys()
            reason = Misread.TRAILING_TEXT if whole else Misread.UNKNOWN_OUTPUT
            refuse(reason, f"the line {line[:MAX_SHOWN_CHARACTERS]!r} is not one of {', '.join(titles)}")
        if title in found:
            refuse(Misread.REPEATED_OUTPUT, f"the output {title} is there twice")
        found[title] = answer
    return {title: answer for title, answer in found.items() if answer is not None}


def headings(titles: Mapping[str, str]) -> dict[str, str]:
    """Return the headings of titles such as `Style: Image 1`, by their text without case."""
    found = [title.rpartition(HEADING)[0] for title in titles]
    return {heading.casefold(): heading for heading in found if heading}


def read_lines(lines: Sequence[str], form: AnswerForm, titles: Mapping[str, str]) -> Iterator[LineRead]:
    """Yield each of *lines* with its title and the answer; a heading holds until the next one."""
    known = {title.casefold(): (title, place) for place, title in enumerate(titles, 1)}
    above, heading = headings(titles), ""
    for line in lines:
        number = PLACE.match(line) if form.numbered else None
        name, colon, answer = line[number.end() if number else 0 :].partition(":")
        key, answer = name.strip().casefold(), answer.strip()
        if colon and key in above and not answer:
            heading = key
            yield LineRead(line, above[key], None)
            continue
        title, place = known.get(f"{heading}{HEADING}{key}") or known.get(key) or (None, 0)
        if not colon or (number and int(number[1]) != place):
            title = None
        if form.line_ends and answer[-1:] and answer[-1] in form.line_ends:
            answer = answer[:-1].rstrip()
        yield LineRead(line, title, answer)


def value_in(text: str, form: AnswerForm, title: str, output: Output) -> OutputValue:
    """Return the answer that a text is, or its last line."""
    if not form.final_lines:
        return of_text(text.strip(), title, output)
    *before, last = [*filter(None, map(str.strip, text.splitlines()))] or [""]
    if any(possible(line, output) for line in before):
        refuse(Misread.REPEATED_OUTPUT, f"{title} is answered before the last line")
    return of_text(last, title, output)


def possible(answer: str, output: Output) -> bool:
    """Return whether an output can have this answer."""
    try:
        of_text(answer, "", output)
    except AnswerRefused:
        return False
    return True


def of_json(answer: Any, title: str, output: Output) -> OutputValue:
    """Return an answer of JSON, if it is possible."""
    if output.form in ("grade", "number"):
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            refuse(Misread.NOT_A_NUMBER, not_possible(answer, title, output))
        return number_of(answer, title, output)
    if not isinstance(answer, str):
        refuse(Misread.NOT_A_LABEL, not_possible(answer, title, output))
    return of_text(answer, title, output)


def of_text(answer: str, title: str, output: Output) -> OutputValue:
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


def of_symbol(answer: str, output: Output, letters: bool) -> OutputValue:
    """Return the answer that a symbol stands for."""
    symbols = output.symbols(letters)
    symbol = answer.capitalize() if output.form == "yes_no" else answer
    if symbol not in symbols:
        reason = Misread.OUT_OF_RANGE if INTEGER.fullmatch(answer) else Misread.NOT_A_LABEL
        refuse(reason, f"{repr(answer)[:MAX_SHOWN_CHARACTERS]} is not one of {', '.join(symbols)}")
    meant = symbols[symbol]
    return int(meant) if output.form == "grade" else meant


def number_of(answer: int | float, title: str, output: Output) -> OutputValue:
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
