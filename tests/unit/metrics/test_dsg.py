"""DSG: yes and no fold into a score, and what is left of it without a question LLM."""

import gzip
import json
from math import exp, log
from types import SimpleNamespace

import pytest

from models.core.outcomes import Likelihood
from models.families.fake.model import GREY
from service.metrics.common.contract import Item
from service.metrics.dsg import DsgOptions, dsg, fold, moot
from service.questions.sets import Question
from service.questions.styles.dsg import DSG
from tests.support.dsg import CHAIN
from tests.support.paths import GOLDEN


@pytest.mark.parametrize(
    ("dependencies", "zeroed"),
    [("direct", {2: [1]}), ("transitive", {2: [1], 3: [2]}), ("none", {})],
)
def test_children_of_a_no_count_nothing(dependencies, zeroed):
    """Direct parents as the released code has it; transitive as the paper writes it."""
    yes = {1: False, 2: True, 3: True}

    assert zeroed == moot(CHAIN, yes, dependencies)


def test_a_soft_answer_counts_its_probability_unless_a_parent_is_a_no():
    """Whether a parent is a "no" is decided by the likelier answer."""
    yes, counts = {1: True, 2: False, 3: True}, {1: 0.9, 2: 0.4, 3: 0.8}

    assert {1: 0.9, 2: 0.4, 3: 0.0} == fold(CHAIN, yes, counts, "direct").scores
    assert {1: 0.9, 2: 0.0, 3: 0.8} == fold(CHAIN, {**yes, 1: False, 2: True}, counts, "direct").scores


def test_scores_of_tifa160_are_the_released_ones():
    """795 images, 3 dependency rules: the mean that the released code gives (tests/golden/README.md)."""
    path = GOLDEN / "dsg_tifa160.json.gz"
    for _, _, asked, *expected in json.loads(gzip.decompress(path.read_bytes())):
        questions = [Question(n, str(n), depends_on=tuple(parents)) for n, parents, _ in asked]
        yes = {n: bool(said) for n, _, said in asked}
        for rule, score in zip(("direct", "transitive", "none"), expected, strict=True):
            zeroed = moot(questions, yes, rule)
            counted = [yes[q.id] and q.id not in zeroed for q in questions]

            assert score == pytest.approx(sum(counted) / len(counted), abs=1e-6)


LOGIT = log(0.6 / 0.4)
CHAINED = [{"id": n, "text": f"{n}?", "depends_on": [n - 1] if n > 1 else []} for n in (1, 2, 3)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "value", "zeroed"),
    [
        ({}, 1 / 3, [[], [1], []]),
        ({"dependencies": "none"}, 2 / 3, [[], [], []]),
        ({"dependencies": "none", "answers": "soft"}, (0.5 + 2 * 0.6) / 3, [[], [], []]),
    ],
)
async def test_a_question_is_a_yes_if_that_is_likelier(options, value, zeroed):
    """A tie is a no; the details name the parents that zeroed a question."""

    async def ask(image, questions, answer):
        assert (["1?", "2?", "3?"], "Yes") == (questions, answer)
        return [Likelihood((-1.0,), -1.0, -1.0), *[Likelihood((-1.0,), -1.0, -1.0 - LOGIT)] * 2]

    models = SimpleNamespace(vqa=SimpleNamespace(ask=ask), questions=SimpleNamespace(style=DSG))
    asked = DsgOptions.model_validate({"question": "{}", "question_set": CHAINED, **options})
    score = await dsg(Item(GREY, "a dog"), models, asked)
    shown = score.details["questions"]

    assert value == pytest.approx(score.value)
    assert zeroed == [question["zeroed_by"] for question in shown]
    assert ["no", "yes", "yes"] == [question["answer"] for question in shown]
    assert [0.5, 0.6, 0.6] == pytest.approx([question["probability"] for question in shown])
    assert 2 * exp(-1) == pytest.approx(shown[0]["label_mass"])
