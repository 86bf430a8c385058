"""Pickles of answers: any Python reads them, and no text keeps one from being written."""

import pickle

from service.web.dialects.pickled.app import written


def test_a_text_that_has_no_encoding_is_written_with_question_marks():
    """A lone surrogate, which a name in a request may hold."""
    assert {"error": "no ? here"} == pickle.loads(written({"error": "no \ud800 here"}))


def test_an_answer_within_an_answer_is_written():
    """As trainers of several rewards read it."""
    answer = {"scores": [0.5, -1.0], "parts": {"recall": [], "name": "é"}}

    assert answer == pickle.loads(written(answer))
