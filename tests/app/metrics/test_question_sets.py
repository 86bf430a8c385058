"""What all metrics with question sets say about them."""

import pytest

from tests.support.pictures import item
from tests.support.questions import written

METRICS = ["dsg", "tifa", "soft_tifa", "vq2", "gecko", "skills"]


@pytest.mark.anyio
async def test_the_cache_status_of_a_score_is_that_of_its_question_set(serve):
    """Here the sets are stored, and the model's answers are new."""
    async with serve() as client:
        for style in METRICS:
            assert 200 == (await written(client, style, "a red dog")).status_code
        answer = await client.post("/score", json={"items": [item("a red dog")], "metrics": METRICS})

    assert dict.fromkeys(METRICS, "hit") == answer.json()["results"][0]["cache"]
