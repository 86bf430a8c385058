"""What models answer is held beside the version of the arithmetic, which is part of every cache key."""

import hashlib
import json

import pytest

from models.core.contract import ARITHMETIC
from models.families.registry import own
from tests.support.golden_answers import RECORDED, answers, rounded

# The sha256 of tests/golden/arithmetic.json in each version of the arithmetic; only lines are added to one.
HASHES = {
    1: "eebb9478d7025630b03540f4a6d6b87a7e8549ae1a0068f864253c45550996bf",
    2: "98414947339a149d67d6bdb0611c9e1f933a835b937101bef0e7be438e7a7363",
}

RAISE = (
    "what models answer has changed: raise ARITHMETIC in models/core/contract.py, run "
    "`python -m tests.support.golden_answers`, and add the new hash to HASHES: "
)
MADE = answers()
UNKEPT = {"transformers", "openai"}  # question LLMs, whose answers no cache keeps
NEAR = 5e-3  # other processors round otherwise, a pixel now and then, too


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORDED.read_text())


def test_the_recorded_answers_are_those_of_this_version():
    """Whoever records them anew has to raise the version."""
    found = hashlib.sha256(RECORDED.read_bytes()).hexdigest()

    assert found == HASHES.get(ARITHMETIC), RAISE + found
    assert len(HASHES) == len(set(HASHES.values()))


def test_every_family_that_answers_are_kept_of_is_recorded(recorded):
    """A new one has a place in tests/support/golden_answers.py."""
    families = set(own()) - UNKEPT - {"fake"}

    assert [*recorded] == [*MADE]
    assert families <= {name.split()[0] for name in recorded}


@pytest.mark.parametrize("name", MADE)
def test_models_answer_as_they_did_when_this_version_was_recorded(name, recorded, tmp_path):
    """A change of pixels, tokens or arithmetic fails here; a raised version has all be asked again."""
    assert rounded(MADE[name](tmp_path)) == pytest.approx(recorded[name], rel=NEAR, abs=NEAR), RAISE + name
