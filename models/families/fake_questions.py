"""Text of a fake question LLM, for any schema."""

import json
import re
from collections.abc import Mapping
from typing import Any

YES_NO_QUESTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {"items": {"properties": {"id": {}, "kind": {}, "text": {}, "depends_on": {}}}}
    },
}


def written(user: str, schema: Mapping[str, Any]) -> str:
    """
    Return JSON of *schema*, whose one list has an entry for every noun after an article, with the word before
    it.

    A list of plain texts answers each of the numbered questions in the user message with yes.
    """
    [(name, entries)] = schema["properties"].items()
    fields = entries["items"].get("properties")
    if fields is None:
        listed = user.rpartition("questions: ")[2]
        return json.dumps({name: ["yes" for _ in re.findall(r"(?:^|; )\d+ ", listed)]})
    nouns = dict.fromkeys(re.findall(r"\ban? (\w+ \w+)", user.split("prompt: ", 1)[-1]))
    return json.dumps({name: [entry(name, n, noun, fields) for n, noun in enumerate(nouns, 1)]})


def entry(name: str, number: int, noun: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return one entry about *noun* in the list *name*: the *fields* of its schema."""
    question, in_pairs = f"Is there a {noun}?", name == "pairs"
    known: dict[str, Any] = {
        "id": number,
        "kind": "entity",
        "text": noun if name == "keywords" else question,
        "depends_on": [],
        "tuple": f"entity ({noun})",
        "entity": noun,
        "type": "object",
        "choices": ["yes", "no"],
        "answer": noun if in_pairs else "yes",
        "question": "What is there?" if in_pairs else question,
        "groundable": True,
        "skill": "entities",
        "subskill": "object",
        "phrase": noun,
        "node_type": "presence",
    }
    return {field: known[field] for field in fields}
