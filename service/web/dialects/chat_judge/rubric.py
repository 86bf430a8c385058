"""
A rubric: named questions in sections, with a score for each.

verl-omni's agentic rewards send one: lines `- NAME: QUESTION` below a heading `CORRECTNESS QUESTIONS:`,
and before them the request of its user.  They read `correctness_scores` and `aesthetics_scores`.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from service.core.errors import Invalid
from service.web.dialects.decisions.questions import Question, Reading, with_input, within_limits

HEADING = re.compile(r"([A-Z][A-Z_ ]*) QUESTIONS:")
LINE = re.compile(r"- (\w+): (.+)")
REQUEST = "User request: "
AFTER_REQUEST = ("Diffusion prompt used", "Notes: ")  # lines that end it
MAX_QUESTIONS = 64


@dataclass(frozen=True, slots=True)
class Facet:
    """One question of a rubric."""

    section: str
    name: str
    question: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """The questions, and the request that the picture should fulfil."""

    request: str
    facets: Sequence[Facet]

    def __post_init__(self) -> None:
        """Raise `Invalid` for too many questions, or two of one name."""
        if len(self.facets) > MAX_QUESTIONS:
            raise Invalid(f"/messages: the rubric has more than {MAX_QUESTIONS} questions")
        if len({(each.section, each.name) for each in self.facets}) < len(self.facets):
            raise Invalid("/messages: two questions of a section have one name")

    def questions(self) -> list[Question]:
        """Return the questions of yes or no.  Raises `Invalid` for a text that no model can read."""
        state = f"The picture was made for this request: {self.request}" if self.request else ""
        return within_limits(
            Question(f"/messages: {each.name}", "yes_no", with_input(state, each.question))
            for each in self.facets
        )

    def answer(self, readings: Sequence[Reading]) -> dict[str, Any]:
        """Return the probability of yes for each question, and the mean of each section."""
        shares = [each.probabilities[0] for each in readings]
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        for facet, share in zip(self.facets, shares, strict=True):
            scores[facet.section][facet.name] = share
        lowest, facet = min(zip(shares, self.facets, strict=True), key=lambda each: each[0])
        return {
            **{section: fmean(found.values()) for section, found in scores.items()},
            **{f"{section}_scores": found for section, found in scores.items()},
            "findings": f"lowest: {facet.name} ({lowest:.2f})",
            "suggested_fixes": "none",
        }


def rubric(text: str) -> Rubric | None:
    """Return the rubric in a text, None if there is none.  Raises `Invalid`."""
    section, reads_request = "", False
    headings: dict[str, str] = {}
    facets: list[Facet] = []
    request: list[str] = []
    for line in text.splitlines():
        if heading := HEADING.fullmatch(line.strip()):
            section = heading[1].lower().replace(" ", "_")
            headings[section] = heading[0]
        elif section and (found := LINE.fullmatch(line.strip())):
            facets.append(Facet(section, found[1], found[2]))
        elif section and line.strip().startswith("-"):
            raise Invalid(f"/messages: a line below {headings[section]!r} is not `- NAME: QUESTION`")
        else:
            section = ""
        if line.startswith(REQUEST):
            reads_request, line = True, line.removeprefix(REQUEST)
        elif line.startswith(AFTER_REQUEST) or section:
            reads_request = False
        if reads_request:
            request.append(line)
    for empty in headings.keys() - {each.section for each in facets}:
        raise Invalid(f"/messages: there is no line `- NAME: QUESTION` below {headings[empty]!r}")
    return Rubric("\n".join(request).strip(), facets) if facets else None
