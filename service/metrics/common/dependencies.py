"""Questions that do not apply if another one is answered "no"."""

from collections.abc import Mapping, Sequence
from typing import Literal

from service.questions.sets import Question

Dependencies = Literal["direct", "transitive", "none"]


def moot(
    questions: Sequence[Question], yes: Mapping[int, bool], dependencies: Dependencies
) -> dict[int, list[int]]:
    """
    Return the questions that count 0 because of a parent, with the parents that decided it.

    The order of the questions does not matter, and published sets with cycles work like all others.
    """
    if dependencies == "none":
        return {}
    no = {id for id, answer in yes.items() if not answer}
    while True:
        deciding = {q.id: [parent for parent in q.depends_on if parent in no] for q in questions}
        zeroed = {id: parents for id, parents in deciding.items() if parents}
        if dependencies == "direct" or zeroed.keys() <= no:
            return zeroed
        no |= zeroed.keys()
