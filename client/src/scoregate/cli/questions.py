"""`scoregate questions`: the question sets of prompts; and the details of a score for people."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, add_settings, service_of, settings_of
from scoregate.inventory import QuestionsSettings, questions
from scoregate.text import complain, number, say, shown, table

HEADS = ("ID", "QUESTION", "AFTER", "EXPECTED", "ANSWER", "P", "SCORE", "ZEROED BY")
NUMBERS = ("ID", "P", "SCORE")
WEIGHT_HEADS = ("weight", "contribution")  # where questions have weights
GRADE_HEADS = ("OUTPUT", "VALUE", "ANSWERS", "SPREAD", "PROBABILITIES")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, QuestionsSettings)
    parser.add_argument("--json", action="store_true", help="print the sets as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if a prompt has no questions."""
    found = questions(settings_of(QuestionsSettings, arguments), service_of(arguments))
    if arguments.json:
        print(json.dumps({"sets": [each.as_json() for each in found.sets]}))
    else:
        print("\n\n".join(map(as_text, found.sets)))
        for each in found.sets:
            if each.error:
                complain(f"{each.prompt}: {each.error.code}: {each.error.detail}")
    for notice in found.warnings:
        say(f"warning: {notice}")
    return OK if found.complete else NO_SCORE


def as_text(found: scoregate.QuestionSet) -> str:
    """Return a set's questions in a table below its prompt and its id."""
    if found.error:
        return f"{shown(found.prompt)}\n  no questions: {shown(found.error.code)}"
    rows = [
        [
            question["id"],
            question["text"],
            question.get("kind") or "",
            numbers(question.get("depends_on")),
            " / ".join(question.get("choices") or ()),
            question.get("expected") or "",
        ]
        for question in found.questions
    ]
    heads = ["ID", "QUESTION", "KIND", "AFTER", "CHOICES", "EXPECTED"]
    return f"{shown(found.prompt)}\n{shown(found.id)}\n{indented(table(heads, rows, right=['ID']))}"


def explained(details: Mapping[str, Any]) -> str:
    """Return the questions as a table, a line for each plain value, and the details of parts and frames."""
    parts = []
    questions = details.get("questions")
    if isinstance(questions, list):
        weighed = [*WEIGHT_HEADS] if any("contribution" in question for question in questions) else []
        rows = [
            question_row(question) + [number(question.get(head)) for head in weighed]
            for question in questions
        ]
        parts.append(
            table((*HEADS, *map(str.upper, weighed)), rows, right=(*NUMBERS, *map(str.upper, weighed)))
        )
    parts += graded(details)
    for name, value in details.items():
        if isinstance(value, str | int | float | bool):
            parts.append(f"{shown(name)}: {number(value) if isinstance(value, float) else shown(value)}")
    if missed := details.get("uncovered"):
        parts.append(shown(f"no question about: {', '.join(map(str, missed))}"))
    parts += [f"{name}:\n{text}" for name, inner in nested(details).items() if (text := explained(inner))]
    return indented("\n".join(parts))


def graded(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the instructions of a judge, its written answers, and a table of its grades."""
    calls = details.get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield indented("\n".join(map(shown, str(call.get("question", "")).splitlines())))
            yield from (f"wrote: {shown(text)}" for text in call.get("written") or ())
    outputs = details.get("outputs")
    if isinstance(outputs, Mapping):
        rows = [grade_row(name, each) for name, each in outputs.items() if isinstance(each, Mapping)]
        yield from [table(GRADE_HEADS, rows, right=("VALUE", "SPREAD"))] if rows else []
    if "label_mass" in details:  # a metric of one output has no `outputs`
        yield table(GRADE_HEADS, [grade_row("", details)])


def grade_row(name: str, output: Mapping[str, Any]) -> list[Any]:
    """Return the cells of one output: what it counts, the answers, and the probability of each label."""
    answers, probabilities = output.get("answers"), output.get("probabilities")
    among = probabilities.items() if isinstance(probabilities, Mapping) else ()
    return [
        name,
        figure(output.get("value")),
        " / ".join(map(str, answers if isinstance(answers, list) else ())),
        figure(output.get("spread")),
        ", ".join(f"{label} {figure(share)}" for label, share in among),
    ]


def figure(value: Any) -> str:
    """Return a number as text; empty for anything else."""
    return number(value) if isinstance(value, int | float) else ""


def nested(details: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the details within *details* by name: of a composite's parts, of frames, of a grid of frames."""
    found = {name: details.get(name) for name in ("details", "grid", "alignment")}
    if isinstance(parts := details.get("parts"), Mapping):
        found |= parts
    if isinstance(frames := details.get("frames"), list):
        found |= {f"frame {place}": frame for place, frame in enumerate(frames, 1)}
    return {shown(name): inner for name, inner in found.items() if isinstance(inner, Mapping)}


def question_row(question: Mapping[str, Any]) -> list[Any]:
    """Return a question's cells."""
    return [
        question.get("id", ""),
        question.get("text", ""),
        numbers(question.get("depends_on")),
        question.get("expected") or "",
        question.get("answer") or "",
        number(probability(question)),
        number(question.get("score")),
        numbers(question.get("zeroed_by")),
    ]


def numbers(ids: Any) -> str:
    """Return the ids of other questions."""
    return " ".join(map(str, ids or ()))


def probability(question: Mapping[str, Any]) -> float | None:
    """Return the probability of "yes" among yes and no; with choices, that of the answer."""
    found = question.get("probability")
    among = question.get("probabilities")
    if found is None and isinstance(among, Mapping):
        found = among.get(question.get("answer"))
    return found if isinstance(found, int | float) else None


def indented(text: str) -> str:
    """Indent *text* by two columns."""
    return "\n".join(f"  {line}" for line in text.splitlines())
