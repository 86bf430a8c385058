"""Gecko's warnings about its questions."""

from models.core.outcomes import Entailment
from service.metrics.gecko import CUT_FOR_NLI, UNFILTERED_NOTE, warnings
from service.observability.notes import Code, Note
from service.questions.sets import QuestionSet


def test_words_without_a_question_and_prompts_that_were_cut_are_warnings():
    """Each once, in words; without an NLI model that is one, too."""
    missing = Note(Code.KEYWORDS_WITHOUT_QUESTION, "the question LLM wrote no question about: dog, sky")
    asked = QuestionSet("a dog", "gecko", (), unasked=("dog", "sky"))
    entailed = {1: Entailment(0.9), 2: Entailment(0.9, truncated=True)}

    assert (missing, CUT_FOR_NLI) == warnings(asked, [], entailed)
    assert (missing, UNFILTERED_NOTE) == warnings(asked, [], None)
    assert () == warnings(QuestionSet("a dog", "gecko", ()), [], {1: Entailment(0.9)})
