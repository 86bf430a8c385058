"""Outcomes: what is kept of one is the same to the last bit, and everything else is refused."""

import base64
import json
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import orjson
import pytest

from models.core.outcomes import (
    CallResult,
    Choices,
    Embedding,
    Entailment,
    FirstToken,
    Likelihood,
    Line,
    Reading,
    Text,
)

LIKELIHOOD = Likelihood(
    (math.log(1 / 3), -1e-300, -5e-324), -0.1 - 0.2, math.nextafter(-7.0, 0), truncated=True
)
VECTOR = np.random.default_rng(1).standard_normal(512).astype(np.float32)
VECTOR /= np.linalg.norm(VECTOR)


def test_a_likelihood_comes_back_to_the_last_bit():
    """Floats in as many digits as tell them apart."""
    found = CallResult.loads(LIKELIHOOD.dumps())

    assert LIKELIHOOD == found
    assert LIKELIHOOD.log_probs[2].hex() == found.log_probs[2].hex()


def test_numbers_of_other_types_are_written_as_floats():
    """numpy's among them."""
    found = CallResult.loads(Likelihood((np.float64(-1.5), -1), np.float64(-1.0), -2).dumps())

    assert Likelihood((-1.5, -1.0), -1.0, -2.0) == found


def test_an_embedding_comes_back_to_the_last_bit_and_read_only():
    """All 512 numbers."""
    found = CallResult.loads(Embedding(VECTOR, truncated=True).dumps())

    assert VECTOR.tobytes() == found.vector.tobytes()
    assert (np.float32, True) == (found.vector.dtype, found.truncated)
    assert not found.vector.flags.writeable


def test_how_texts_were_read_is_stored_behind_the_numbers():
    """Stores of earlier versions hold these bytes."""
    stored = b'{"kind":"entailment","probability":0.5,"truncated":true,"unknown":0.25}'

    assert Entailment(0.5, truncated=True, unknown=0.25) == CallResult.loads(stored)
    assert stored == CallResult.loads(stored).dumps()


@pytest.mark.parametrize("text", ["", '{"questions": []}', "漢字 \n \x00 😀"])
def test_a_text_comes_back_letter_by_letter(text):
    """Whatever is in it."""
    assert Text(text) == CallResult.loads(Text(text).dumps())


THIRD = math.log(1 / 3)
BOX = ((0.1, 0.2), (9.0, 0.3), (9.0, 4.0), (0.1, 4.0))
OTHERS = [
    Choices(((THIRD, -5e-324), (-7.0,)), truncated=True),
    FirstToken((THIRD, -7.0), (5, 9)),
    Entailment(1 / 3, truncated=True),
    Reading((Line("漢字 A", BOX, 1 / 3), Line("", BOX, 1.0))),
    Reading(()),
]


@pytest.mark.parametrize("outcome", OTHERS)
def test_every_other_outcome_comes_back_to_the_last_bit(outcome):
    """As stores keep it."""
    assert outcome == CallResult.loads(outcome.dumps())


@pytest.mark.parametrize(
    "written",
    [
        {"kind": "choices", "log_probs": [], "truncated": False},
        {"kind": "choices", "log_probs": [[]], "truncated": False},
        {"kind": "choices", "log_probs": [[-1]], "truncated": False},
        {"kind": "choices", "log_probs": [[None]], "truncated": False},
        {"kind": "first_token", "log_probs": [-1.0], "tokens": [1, 2], "truncated": False},
        {"kind": "first_token", "log_probs": [-1.0], "tokens": [1.0], "truncated": False},
        {"kind": "entailment", "probability": 1.5, "truncated": False},
        {"kind": "entailment", "probability": "1", "truncated": False},
        {"kind": "reading", "lines": [["a", [[0.0, 0.0]], 1.0]]},
        {"kind": "reading", "lines": [[5, [[0.0, 0.0]] * 4, 1.0]]},
        {"kind": "reading", "lines": [["a", [["x", 0.0]] * 4, 1.0]]},
        {"kind": "reading", "lines": "a"},
    ],
)
def test_what_is_no_whole_outcome_is_not_read(written):
    """It counts as missing."""
    assert CallResult.loads(orjson.dumps(written)) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_outcome_says_whether_its_numbers_are_finite_and_is_not_read_where_they_are_not(bad):
    """In any place."""
    bent = VECTOR.copy()
    bent[7] = bad
    outcomes = [
        Likelihood((bad,), -1.0, -2.0),
        Likelihood((-1.0, bad), -1.0, -2.0),
        Likelihood((-1.0,), bad, -2.0),
        Likelihood((-1.0,), -1.0, bad),
        Embedding(bent),
        Choices(((-1.0,), (-1.0, bad))),
        FirstToken((-1.0, bad), (1, 2)),
        Entailment(bad),
        Reading((Line("a", BOX, bad),)),
        Reading((Line("a", ((bad, 0.0), *BOX[1:]), 0.5),)),
    ]

    assert LIKELIHOOD.is_finite()
    assert Embedding(VECTOR).is_finite()
    assert Text("nan").is_finite()
    assert [False] * len(outcomes) == [outcome.is_finite() for outcome in outcomes]
    assert [None] * len(outcomes) == [CallResult.loads(outcome.dumps()) for outcome in outcomes]


WRITTEN = LIKELIHOOD.to_json() | {"kind": "likelihood"}
BROKEN = [
    b"",
    b"null",
    b"[]",
    b'"likelihood"',
    b"\xff\xfe",
    *(LIKELIHOOD.dumps()[:length] for length in (1, 20, 60, len(LIKELIHOOD.dumps()) - 1)),
    Embedding(VECTOR).dumps()[:-30],
    orjson.dumps(LIKELIHOOD.to_json()),
    orjson.dumps(WRITTEN | {"kind": "embedding"}),
    orjson.dumps(WRITTEN | {"kind": "unheard of"}),
    orjson.dumps(WRITTEN | {"kind": ["likelihood"]}),
    orjson.dumps(WRITTEN | {"log_probs": []}),
    orjson.dumps(WRITTEN | {"log_probs": [1]}),
    orjson.dumps(WRITTEN | {"log_p_yes": None}),
    orjson.dumps(WRITTEN | {"truncated": 1}),
    orjson.dumps({"kind": "embedding", "truncated": False, "vector": ""}),
    orjson.dumps({"kind": "embedding", "truncated": False, "vector": "#"}),
    orjson.dumps({"kind": "embedding", "truncated": False, "vector": base64.b64encode(b"abc").decode()}),
    orjson.dumps({"kind": "text", "text": None}),
]


@pytest.mark.parametrize("value", BROKEN)
def test_bytes_that_no_outcome_wrote_are_no_outcome(value):
    """Cut short, of another kind, or with a field of another type."""
    assert CallResult.loads(value) is None


def test_a_new_kind_of_outcome_is_one_class():
    """Nothing else needs to know it."""

    @dataclass(frozen=True, slots=True)
    class Box(CallResult):
        kind: ClassVar[str] = "box of a test"
        corners: tuple[float, ...]

        def is_finite(self):
            return all(map(math.isfinite, self.corners))

        def to_json(self):
            return {"corners": list(self.corners)}

        @classmethod
        def from_json(cls, written):
            return cls(tuple(written["corners"]))

    box = Box((0.1, 0.2, 0.7, 0.9))
    assert box == CallResult.loads(box.dumps())
    assert CallResult.loads(b'{"kind": "box of a test"}') is None
    assert json.loads(box.dumps())["kind"] == "box of a test"


def test_what_a_likelihood_says_is_made_of_its_logarithms():
    """Logit, probability and label mass; far apart they stay finite."""
    sure = Likelihood((-0.1,), math.log(0.6), math.log(0.2))
    extreme = Likelihood((-0.1,), -1e-9, -2000.0)

    assert sure.probability == pytest.approx(0.75)
    assert sure.label_mass == pytest.approx(0.8)
    assert sure.logit == pytest.approx(math.log(3))
    assert (1.0, 2000.0) == (extreme.probability, pytest.approx(extreme.logit))
