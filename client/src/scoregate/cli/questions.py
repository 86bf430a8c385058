"""`scoregate questions`: the question sets of prompts."""

import argparse
import json
import sys
from typing import Any

import scoregate
from scoregate.cli.arguments import connected
from scoregate.cli.exits import NO_SCORE, OK
from scoregate.cli.explain import indented, numbers
from scoregate.cli.warned import demos
from scoregate.text import shown, table

ROLE = "questions"  # of the models that write them
HELP = "show the questions about prompts, and store them for scoring"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("prompts", nargs="+", metavar="PROMPT")
    parser.add_argument("--style", default="dsg", help="the metric that uses them (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the sets as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if a prompt has no questions."""
    with connected(arguments) as client:
        sets = client.questions(arguments.prompts, arguments.style)
        writers = {each["name"]: each["id"] for each in client.models()["models"] if each["role"] == ROLE}
    if arguments.json:
        print(json.dumps({"sets": [as_json(each) for each in sets]}))
    else:
        print("\n\n".join(map(as_text, sets)))
        for each in sets:
            if each.error:
                print(shown(f"{each.prompt}: {each.error.code}: {each.error.detail}"), file=sys.stderr)
    for notice in demos(writers):
        print(shown(f"warning: {notice}"), file=sys.stderr)
    return NO_SCORE if any(each.error for each in sets) else OK


def as_json(found: scoregate.QuestionSet) -> dict[str, Any]:
    """Return a question set in the service's wire format."""
    content: dict[str, Any] = {"prompt": found.prompt, "style": found.style}
    if found.error:
        return content | {"error": {"code": found.error.code, "detail": found.error.detail}}
    return content | {"id": found.id, "cached": found.cached, "questions": list(found.questions)}


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
