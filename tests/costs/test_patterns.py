"""What regular expressions of the source cost on repeated characters at full length: linear time."""

import ast
import importlib
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from service.web.dialects.questions import MAX_TEXT

ROOT = Path(__file__).parents[2]
METHODS = {"search", "match", "fullmatch", "findall", "finditer", "split", "sub"}
MOST_GROWTH = 8  # of the time, for four times the text: 4 if it is linear, 16 if it is quadratic
MOST_WALKS = 200  # in which each character is visited once
SIZES = (24, MAX_TEXT // 4, MAX_TEXT)  # characters; exponential time shows in the first
AROUND = (("", ""), ("x", "\0"))  # with an end that few patterns match

UNITS = [  # what a text repeats
    *" \n\t.,:;!?'\"()[]{}<>|&%=/\\@_-aA0é\u00a0“’",
    *(
        "a ",
        " a",
        "a.",
        ". ",
        "0.",
        "a-",
        "'a",
        '"a" ',
        "(a",
        "a(",
        "a)",
        " (a",
        "\r\n",
        "\n\n",
        "a\n",
        "- a: ",
    ),
    *(
        "1. ",
        "{1}[",
        "(1)[",
        '{"a',
        '{ "',
        "</",
        "//",
        "; ",
        ";0 ",
        "hf-hub:a",
        "http://",
        "https://a",
        ".mp4",
    ),
    *(
        "the image ",
        "this picture",
        "and ",
        "a and ",
        "two ",
        "please ",
        ". please ",
        "give ",
        ".give a ",
        "A ",
    ),
    *(
        "score ",
        "score from ",
        "score of 1",
        "on a scale ",
        "you are a ",
        " QUESTIONS:",
        "A QUESTIONS",
        "Q: ",
    ),
    *("About ", "About a:", "yes ", "an a ", "a photo of ", " left of ", "vl"),
]
# Patterns in tables, for the names of tensors in checkpoints, and of a family's own tokens, escaped.
IN_TABLES = {
    "models/checkpoints/weights.py",
    "models/families/vl_inputs.py",
    "models/families/vl_reward.py",
}


def called() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield the file, the object and the call of each method with a name of `re`'s functions."""
    for folder in ("service", "models"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield str(file.relative_to(ROOT)), ast.unparse(node.func.value), node


@cache
def patterns() -> dict[str, tuple[re.Pattern[Any], set[str]]]:
    """Return the patterns of the source by file and line, with the methods that are called on each."""
    used, found, in_tables, calls = defaultdict(set), {}, set(), [*called()]
    for _, owner, call in calls:
        used[owner.rpartition(".")[2]].add(call.func.attr)
    for file, owner, call in calls:
        method = call.func.attr
        if owner != "re" or method not in {"compile", *METHODS}:
            continue
        names = vars(importlib.import_module(file.removesuffix(".py").replace("/", ".")))
        arguments = call.args if method == "compile" else call.args[:1]  # no call of a function has flags
        try:
            pattern = re.compile(*(eval(ast.unparse(each), names) for each in arguments))
        except NameError:
            in_tables.add(file)
            continue
        # Equal ones: `re` forgets patterns, and compiles them anew.
        same = [name for name, value in names.items() if isinstance(value, re.Pattern) and value == pattern]
        methods = {method}.union(*(used[name] for name in same)) & METHODS or {
            "fullmatch"
        }  # of those in a dict
        found[f"{file}:{call.lineno}"] = pattern, methods
    assert in_tables == IN_TABLES
    return found


def seconds(pattern: re.Pattern[Any], method: str, text: Any, runs: int = 1) -> float:
    """The CPU time of the quickest of some runs."""
    call = getattr(pattern, "findall" if method == "finditer" else method)
    spent = []
    for _ in range(runs):
        began = time.thread_time()
        call(*((text[:0], text) if method == "sub" else (text,)))
        spent.append(time.thread_time() - began)
    return min(spent)


def slow(pattern: re.Pattern[Any], method: str) -> Iterator[str]:
    """Yield what *pattern* takes more than linear time for, if it is repeated."""
    walk = seconds(re.compile("[^\0]"), "findall", "a" * MAX_TEXT, 9)
    for unit in UNITS:
        for before, after in AROUND:
            texts: list[Any] = [f"{before}{unit * (size // len(unit))}{after}" for size in SIZES]
            if isinstance(pattern.pattern, bytes):
                texts = [text.encode() for text in texts]
            if any(seconds(pattern, method, text) > MOST_WALKS * walk for text in texts):
                yield repr(unit)
            elif seconds(pattern, method, texts[-1]) > walk:  # long enough to be compared
                quarter, whole = (seconds(pattern, method, text, 5) for text in texts[-2:])
                if whole > MOST_GROWTH * quarter:
                    yield repr(unit)


def test_every_pattern_takes_linear_time():
    """Of a prompt, a judge's text, a model's answer or a header: none of them holds the process."""
    found = {
        f"{place} {method}": repeated
        for place, (pattern, methods) in patterns().items()
        for method in methods
        if (repeated := next(slow(pattern, method), None))
    }

    assert {} == found


@pytest.mark.parametrize("pattern", [r"(?:^|\n)\s*a", r"\bthe image\b[^.]*\?", r"(?:a|a)*b"])
def test_a_pattern_of_quadratic_or_exponential_time_is_found(pattern):
    """White space after a line's start, a tail that each start walks, and alternatives of one text."""
    assert next(slow(re.compile(pattern), "search"))


def test_patterns_in_calls_and_in_constants_are_found():
    """The judge's instructions, with the method that is used, and the digits of a header."""
    found = {(place.partition(":")[0], *methods) for place, (_, methods) in patterns().items()}

    assert {
        ("service/web/dialects/chat_judge.py", "search"),
        ("service/web/endpoints.py", "fullmatch"),
    } <= found
