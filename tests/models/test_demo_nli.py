"""The shipped NLI model on statements that it was never trained on."""

from random import Random

import pytest

from demo.training.nli_training import draw
from models.checkpoints.locate import DEMO
from models.core.calls import EntailmentCall
from models.families.nli.model import Nli

DROPPED_BELOW = 0.005  # Gecko's threshold


@pytest.fixture(scope="module")
def judged():
    """Held-out pairs, and how likely each prompt entails its question with the answer."""
    random, nli = Random("held-out"), Nli(DEMO / "nli", dtype="float32", device="cpu")
    pairs = [draw(random, unseen=True) for _ in range(300)]
    calls = [nli.prepare(EntailmentCall(pair.premise, pair.hypothesis)) for pair in pairs]
    return [(pair, outcome.probability) for pair, outcome in zip(pairs, nli.score(calls), strict=True)]


def test_it_keeps_what_the_prompt_says(judged):
    kept = [chance >= DROPPED_BELOW for pair, chance in judged if pair.entailed]
    assert sum(kept) / len(kept) > 0.97


def test_it_drops_most_of_what_the_prompt_does_not_say(judged):
    dropped = [chance < DROPPED_BELOW for pair, chance in judged if not pair.entailed]
    assert sum(dropped) / len(dropped) > 0.9
