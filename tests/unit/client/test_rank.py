"""`rank`: answers that are none."""

import httpx2 as httpx
import pytest

from scoregate import ScoregateError
from scoregate.errors import ImageUndecodableError
from tests.support.pictures import png

PICTURES = [png("red"), png("green")]

WRONG = {
    "a picture is missing": [{"index": 0, "score": 0.5, "accepted": True}],
    "a picture is there twice": [{"index": 0, "score": 0.5, "accepted": True}] * 2,
    "no score and no error": [{"index": index, "accepted": True} for index in (0, 1)],
    "no word on acceptance": [{"index": index, "score": 0.5} for index in (0, 1)],
}


@pytest.mark.parametrize("ranking", WRONG.values(), ids=WRONG)
def test_an_order_that_is_none_is_an_error(answered, ranking):
    """Nobody picks the wrong picture because of it."""
    client = answered(lambda request: httpx.Response(200, json={"ranking": ranking}))
    with pytest.raises(ScoregateError, match="the service's answer"):
        client.rank("x", PICTURES)


def test_the_best_of_pictures_that_all_failed_is_their_error(answered):
    """And no picture."""
    entry = {"index": 0, "accepted": True, "error": {"code": "image_undecodable", "detail": "cut"}}
    client = answered(lambda request: httpx.Response(200, json={"ranking": [entry]}))
    with pytest.raises(ImageUndecodableError, match="cut"):
        _ = client.rank("x", PICTURES[:1], on_error="pass").best
