"""Gecko's questions by the prompts of its paper (listings 3 and 4): labels in the text, then blocks."""

import re
from dataclasses import replace

from service.questions.parser import Parser, Texts
from service.questions.style import Ask, Written
from service.questions.styles.completion import CompletionStyle, before, blocks
from service.questions.styles.gecko import CALLS, GECKO, Keyword

KEYWORDS, QUESTIONS = CALLS
LABEL = re.compile(r"[({](\d+)[)}]\s*\[([^\[\]]*)\]")  # "{1}[red, color, 1.0]"
LABELLED = "The visual-groundable words and their scores are labelled below:\n"


class GeckoLines(CompletionStyle):
    """Labels each word of the prompt with its type and a groundability from 0 to 1, then writes questions."""

    async def written(self, ask: Ask, prompt: str) -> Written:
        """Return the questions, each with its keyword, and the keywords without one.  Raises `ValueError`."""
        labelled, keywords = grounded(before(await ask(self.step(KEYWORDS, prompt)), "\nDescription:"))
        if not keywords:
            return Written(())
        text = before(await ask(self.step(QUESTIONS, prompt, labelled)), "\nDescription:")
        questions, asked = [], set()
        for about, question in blocks(text):
            id = number(about)
            if id not in keywords:
                raise ValueError("a question is about no keyword")
            asked.add(id)
            questions.append(replace(question, kind=keywords[id].kind, phrase=keywords[id].text))
        return Written(tuple(questions), tuple(word.text for id, word in keywords.items() if id not in asked))


def grounded(text: str) -> tuple[str, dict[int, Keyword]]:
    """
    Return the text with the labels of listing 4, and the words above groundability 0, numbered from 1.

    Raises:
        ValueError: a label is not a word, a type and a number from 0 to 1.
    """
    found: dict[int, Keyword] = {}

    def label(match: re.Match[str]) -> str:
        word, kind, score = label_of(match[2])
        if not score:
            return word
        found[len(found) + 1] = Keyword(word, kind)
        return f"{{{len(found)}}}[{word}, {kind}]"

    return LABEL.sub(label, text), found


def label_of(text: str) -> tuple[str, str, float]:
    """Parse "red, color, 1.0".  Raises `ValueError`."""
    word, kind, score = ([part.strip() for part in text.rsplit(",", 2)] + ["", ""])[:3]
    try:
        groundability = float(score)
    except ValueError:
        groundability = -1
    if not word or not 0 <= groundability <= 1:
        raise ValueError("a label is not a word, a type and a groundability from 0 to 1")
    return word, kind, groundability


def number(about: str) -> int:
    """Return 1 for "{1}" or "(1)", and 0 for anything else."""
    digits = about.strip("{}() ")
    return int(digits) if digits.isdecimal() else 0


def gecko_lines(name: str, texts: Texts) -> GeckoLines:
    """Return the style with these texts before the prompt."""
    first = "Description:\n{prompt}\n" + LABELLED
    second = first + "{written}\nGenerated questions and answers are below:\n"
    endings = {KEYWORDS: first, QUESTIONS: second}
    return GeckoLines(name, "", {}, lambda answer: (), texts=texts, endings=endings)


parser = Parser("gecko_lines", GECKO, gecko_lines, CALLS)
