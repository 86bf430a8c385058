"""DSG: yes and no fold into a score, and what is left of it without a question LLM."""

import gzip
import json
from pathlib import Path

import pytest

from service.metrics.dsg import moot
from service.questions.sets import Question
from tests.conftest import item
from tests.support.dsg import CHAIN, dsg, post

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("dependencies", "zeroed"),
    [("direct", {2: [1]}), ("transitive", {2: [1], 3: [2]}), ("none", {})],
)
def test_children_of_a_no_count_nothing(dependencies, zeroed):
    """Direct parents as the released code has it; transitive as the paper writes it."""
    yes = {1: False, 2: True, 3: True}

    assert zeroed == moot(CHAIN, yes, dependencies)


def test_scores_of_tifa160_are_the_released_ones():
    """795 images, 3 dependency rules: the mean that the released code gives (tests/golden/README.md)."""
    path = Path(__file__).parents[1] / "golden" / "dsg_tifa160.json.gz"
    for _, _, asked, *expected in json.loads(gzip.decompress(path.read_bytes())):
        questions = [Question(n, str(n), depends_on=tuple(parents)) for n, parents, _ in asked]
        yes = {n: bool(said) for n, _, said in asked}
        for rule, score in zip(("direct", "transitive", "none"), expected, strict=True):
            zeroed = moot(questions, yes, rule)
            counted = [yes[q.id] and q.id not in zeroed for q in questions]

            assert score == pytest.approx(sum(counted) / len(counted), abs=1e-6)


async def test_without_a_question_llm_sets_brought_along_still_score(serve, fakes):
    """No LLM is needed where the questions are given; where they are not, dsg says what is missing."""
    del fakes["questions"]
    own = [{"id": 1, "text": "Is there a dog?"}]
    async with serve() as client:
        given = (await post(client, "/score", dsg(item("a dog"), question_set=own))).json()
        missing = await post(client, "/score", dsg(item("a dog")))

    assert "dsg" in given["results"][0]["scores"]
    assert (503, "not_ready") == (missing.status_code, missing.json()["code"])


async def test_a_failed_llm_fails_the_metric_and_nothing_else(serve, fakes):
    """vqascore of the same item is there; dsg is an entry, never 0."""
    fakes["questions"].texts = {"a red dog": "{"}
    async with serve() as client:
        body = {"items": [item("a red dog"), item("a blue cat")], "metrics": ["vqascore", "dsg"]}
        bad, good = (await post(client, "/score", body)).json()["results"]

    assert {"vqascore"} == bad["scores"].keys()
    assert "question_llm_failed" == bad["errors"]["dsg"]["code"]
    assert {"vqascore", "dsg"} == good["scores"].keys()
