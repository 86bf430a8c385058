"""The question sets of results, with their questions, for a service that does not have them."""

import shlex
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import scoregate
from scoregate.cli.lines import Line
from scoregate.cli.results import Results
from scoregate.text import shown

Sets = Mapping[str, Mapping[str, Any]]  # as from `GET /questions/{id}`, by id


def keep_sets(client: scoregate.Client, results: Results) -> None:
    """Add the sets that the lines name to `results.sets`; sets that came with a row are in no store."""
    if results.sets is None:
        return
    try:
        for id in sorted(ids_of(results.lines()) - results.sets.keys()):
            if found := stored(client, id):
                results.sets[id] = content_of(found)
    except scoregate.ScoregateError as exc:  # the scores are there
        print(shown(f"the manifest lacks question sets, run again to add them: {exc}"), file=sys.stderr)


def stored(client: scoregate.Client, id: str) -> scoregate.QuestionSet | None:
    """Return the set that the service has under *id*, if any.  Raises `ScoregateError`."""
    try:
        return client.question_set(id)
    except scoregate.UnknownQuestionSet:
        return None


def ids_of(lines: Iterable[Line]) -> set[str]:
    """Return the ids of the sets that *lines* name."""
    return {id for line in lines for id in line.get("question_sets", {}).values()}


def content_of(found: scoregate.QuestionSet) -> dict[str, Any]:
    """Return a set as `scoregate-server questions import` reads it."""
    content: dict[str, Any] = {"prompt": found.prompt, "style": found.style, "id": found.id}
    content |= {"questions": list(found.questions), "provenance": dict(found.provenance)}
    return content | ({"unasked": list(found.unasked)} if found.unasked else {})


def absent(client: scoregate.Client, sets: Sets, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return those of *sets* with one of *ids* that the service does not have.  Raises `ScoregateError`."""
    return {id: sets[id] for id in sorted(sets.keys() & set(ids)) if stored(client, id) is None}


def tell_parts(path: Path, lines: Iterable[Line], missing: Sets) -> None:
    """Print how to import the *missing* sets of parts of composites, which cannot be sent along."""
    places = {
        place
        for line in lines
        for place, id in line.get("question_sets", {}).items()
        if "." in place and id in missing
    }
    if places:
        text = (
            f"the service lacks question sets of {', '.join(sorted(places))}, which a request cannot name;"
            f" import them first: jq -c '.question_sets[]' {shlex.quote(str(path))} > sets.jsonl"
            " && scoregate-server questions import sets.jsonl"
        )
        print(shown(text), file=sys.stderr)


def is_set(content: Any) -> bool:
    """Return True if *content* has the parts of a set that the commands read."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("prompt"), str)
        and isinstance(content.get("questions"), list)
    )
