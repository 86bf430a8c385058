"""TIFA's questions by the prompt of its released code: one call that is answered in lines."""

import re
from dataclasses import replace

from service.questions.parser import Parser, Texts
from service.questions.sets import Question
from service.questions.styles.completion import CompletionStyle, before, blocks
from service.questions.styles.tifa import TIFA, TYPES

ABOUT = re.compile(r"(?P<entity>.*?) \((?P<type>[^()]*)\)")


def parse(answer: str) -> tuple[Question, ...]:
    """Parse the blocks "About ENTITY (TYPE):"; a question of an unknown type is dropped, as in their code."""
    found = []
    for about, question in blocks(before(answer, "\nDescription:")):
        element = ABOUT.match(about)
        if element and element["type"] in TYPES:
            found.append(replace(question, kind=element["type"], phrase=element["entity"]))
    return tuple(found)


def tifa_lines(name: str, texts: Texts) -> CompletionStyle:
    """Return the style with this text before the prompt."""
    endings = {"": "Description: {prompt}\nEntities"}
    return CompletionStyle(name, "", {}, parse, texts=texts, endings=endings)


parser = Parser("tifa_lines", TIFA, tifa_lines)
