"""Parser of GenEval's own prompts into tasks (Ghosh et al. 2023, appendix C.1)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from service.core.errors import NoTask
from service.metrics.objects.classes import CLASSES
from service.metrics.objects.tasks import Colour, Relation, Tag, Task

MAX_QUOTED = 80  # characters of a prompt in an error


def article(name: str) -> str:
    """Return *name* after "a" or "an"."""
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def plural(name: str) -> str:
    """Return the plural as in the prompts: "s", or "es" after an "s", against grammar if need be."""
    return f"{name}es" if name.endswith("s") else f"{name}s"


OBJECTS = {article(name): name for name in CLASSES}
COLOURS = {article(colour): colour for colour in get_args(Colour)}
MANY = {plural(name): name for name in CLASSES}
NUMBERS = {"two": 2, "three": 3, "four": 4}


def group(name: str, words: Iterable[str]) -> str:
    """Return a pattern of any of *words*."""
    return f"(?P<{name}>{'|'.join(map(re.escape, words))})"


A, B = group("a", OBJECTS), group("b", OBJECTS)
COLOURED_A = f"{group('colour_a', COLOURS)} {group('a', CLASSES)}"
COLOURED_B = f"{group('colour_b', COLOURS)} {group('b', CLASSES)}"
TEMPLATES: dict[Tag, re.Pattern[str]] = {
    "single_object": re.compile(A),
    "two_object": re.compile(f"{A} and {B}"),
    "counting": re.compile(f"{group('number', NUMBERS)} {group('many', MANY)}"),
    "colors": re.compile(COLOURED_A),
    "position": re.compile(f"{A} {group('relation', get_args(Relation))} {B}"),
    "color_attr": re.compile(f"{COLOURED_A} and {COLOURED_B}"),
}


def task_of(prompt: str) -> Task:
    """
    Return the task of a prompt.

    Raises:
        NoTask: it fits none of the templates, names an object outside the 80 classes, or names one twice.
    """
    body = prompt.strip().removeprefix("a photo of ")
    if body != prompt.strip():
        for tag, template in TEMPLATES.items():
            if (match := template.fullmatch(body)) and (clauses := clauses_of(tag, match.groupdict())):
                return Task.model_validate({"tag": tag, **clauses})
    quoted = prompt if len(prompt) <= MAX_QUOTED else f"{prompt[:MAX_QUOTED]}…"
    raise NoTask(
        f'"{quoted}" fits none of GenEval\'s templates with its 80 classes of objects;'
        " send the options tag and include, which list the objects"
    )


def clauses_of(tag: Tag, said: Mapping[str, str]) -> dict[str, Any]:
    """Return the clauses of a prompt from its parts; empty if both of its objects are the same."""
    if tag == "counting":
        name, count = MANY[said["many"]], NUMBERS[said["number"]]
        clause = {"class": name, "count": count}
        return {"include": [clause], "exclude": [{**clause, "count": count + 1}]}
    named = [
        {
            "class": OBJECTS.get(said[key], said[key]),
            "count": 1,
            **({"color": COLOURS[said[f"colour_{key}"]]} if f"colour_{key}" in said else {}),
        }
        for key in ("a", "b")
        if key in said
    ]
    if len({clause["class"] for clause in named}) < len(named):
        return {}
    if tag == "position":  # the object that the position refers to comes first
        named = [named[1], {**named[0], "position": [said["relation"], 0]}]
    return {"include": named}
