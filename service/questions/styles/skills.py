"""
Questions by skill: one for each ability that a prompt requires of an image generator.

After "Skill-aligned annotation" (see `service/metrics/skills.py`), sections 3.1 and 3.2 and table 3.  Of its
18 skills, `artifacts` and `aesthetic quality` have no questions.
"""

from typing import Any

from models.core.calls import GenerateCall
from service.questions.sets import Question
from service.questions.style import AnswerParser, Style
from service.questions.styles.reading import (
    NUMBER,
    NUMBERS,
    STRING,
    STRINGS,
    entries,
    instructions,
    number,
    schema,
    text,
)

SKILLS = (
    "entities",
    "attributes",
    "relative_comparison",
    "action",
    "spatial_arrangement",
    "environment_scene",
    "style",
    "lighting",
    "weather",
    "view",
    "text_rendering",
    "mood_feeling",
    "named_entities",
    "language_complexity",
    "time",
    "camera",
)
NODES = ("presence", "property", "relation")
FIELDS = {
    "skill": {"type": "string", "enum": [*SKILLS]},
    "subskill": STRING,
    "phrase": STRING,
    "question": STRING,
    "node_type": {"type": "string", "enum": [*NODES]},
}
SCHEMA = schema("annotations", id=NUMBER, **FIELDS, depends_on=NUMBERS)
RELEASED_SCHEMA = schema("annotations", uid=STRING, **FIELDS, depends_on=STRINGS)


def parse(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `SCHEMA`; the kind is "skill/subskill/type of node"."""
    return tuple(map(question, entries(answer, "annotations")))


def question(entry: dict[str, Any]) -> Question:
    """Parse one question.  Raises `ValueError`, `KeyError` or `TypeError`."""
    skill, node = entry["skill"], entry["node_type"]
    if skill not in SKILLS:
        raise ValueError("a skill is not one of the sixteen")
    if node not in NODES:
        raise ValueError(f"a node is not one of {', '.join(NODES)}")
    return Question(
        number(entry["id"]),
        text(entry["question"]),
        f"{skill}/{text(entry['subskill'])}/{node}",
        tuple(map(number, entry["depends_on"])),
        phrase=text(entry["phrase"]),
    )


class Released(Style):
    """The released code's messages: the prompt alone is the user message; ids are strings of digits."""

    def call(self, prompt: str) -> GenerateCall:
        """Return the call of the LLM."""
        return GenerateCall(self.instructions, prompt, schema=self.schema)

    def identity(self) -> list[Any]:
        """Return everything in the LLM's messages but the prompt."""
        return [self.instructions, self.schema]


def parse_released(answer: str) -> tuple[Question, ...]:
    """Parse an answer that follows `RELEASED_SCHEMA`."""
    return tuple(
        question(
            {
                **entry,
                "id": uid(entry["uid"]),
                "subskill": entry["subskill"] or "",
                "depends_on": [*map(uid, entry["depends_on"])],
            }
        )
        for entry in entries(answer, "annotations")
    )


def uid(value: Any) -> int:
    """Parse an id.  Raises `ValueError`."""
    if not isinstance(value, str) or not value.isdecimal():
        raise ValueError("an id is not a string of digits")
    return int(value)


STYLE = Style("skills", instructions("skills"), SCHEMA, parse)
ONE_QUESTION = Style("skills", instructions("skills_one_question"), SCHEMA, parse)

parser = AnswerParser.of(STYLE)
released_parser = AnswerParser(
    "skills_uids", STYLE, lambda name, texts: Released(name, texts[""], RELEASED_SCHEMA, parse_released)
)
