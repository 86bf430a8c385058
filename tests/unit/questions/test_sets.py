"""Question sets are known by ids, outlive the process, and can be pinned."""

from dataclasses import replace

from service.questions.sets import QuestionSet
from tests.support.dsg import CHAIN


def test_the_id_names_the_content_and_nothing_else():
    """Same prompt, style and questions: same id, whoever wrote them; any difference changes it."""
    base = QuestionSet("a dog", "dsg", CHAIN, {"llm": "one"})

    assert base.id == replace(base, provenance={"llm": "other"}).id
    others = [
        replace(base, prompt="a cat"),
        replace(base, style="tifa"),
        replace(base, questions=CHAIN[:2]),
    ]
    assert 4 == len({base.id, *(other.id for other in others)})
