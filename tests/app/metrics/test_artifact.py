"""The share of an image without artifacts."""

import pytest

from tests.support.fakes import FakeArtifact
from tests.support.pictures import item
from tests.support.questions import scored


@pytest.mark.anyio
async def test_the_score_is_what_the_artifacts_leave(serve, fakes):
    """1 - their ratio, whatever the prompt: two prompts of one picture are one call."""
    fakes["artifact"] = FakeArtifact()
    async with serve() as client:
        one, other = [await scored(client, "artifact", item(prompt)) for prompt in ("a dog", "a cat")]

    ratio = one["details"]["artifact"]["artifact_ratio"]
    assert 1 - ratio == one["scores"]["artifact"] == other["scores"]["artifact"]
    assert 0 < ratio < 1
    assert 1 == len(fakes["artifact"].calls)
