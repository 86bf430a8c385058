"""
Questions by skill: one for each ability that a prompt requires of an image generator.

After "Skill-aligned annotation" (see `service/metrics/skills.py`), sections 3.1 and 3.2 and table 3.  Of its
18 skills, `artifacts` and `aesthetic quality` have no questions.
"""

from typing import Any

from service.questions.sets import Question
from service.questions.style import Style
from service.questions.styles.reading import (
    NUMBER,
    NUMBERS,
    STRING,
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
SCHEMA = schema(
    "annotations",
    id=NUMBER,
    skill={"type": "string", "enum": [*SKILLS]},
    subskill=STRING,
    phrase=STRING,
    question=STRING,
    node_type={"type": "string", "enum": [*NODES]},
    depends_on=NUMBERS,
)


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


STYLE = Style("skills", instructions("skills"), SCHEMA, parse)
