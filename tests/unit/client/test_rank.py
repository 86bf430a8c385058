"""`rank` and `compare`: arguments, requests, and answers that are none."""

import inspect

import httpx2 as httpx
import pytest

from scoregate import Accept, Cascade, Pairing, ScoregateError, TimeSpan
from scoregate.aio import AsyncClient
from scoregate.errors import ImageUndecodableError
from tests.support.answers import request_of
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
        _ = client.rank("x", PICTURES[:1], accept=Accept(on_error="pass")).best


def request_to(answered, call):
    """Return the fields that *call* of a client sends, without the pictures."""
    sent = []

    def refused(request):
        sent.append(request_of(request))
        return httpx.Response(422, json={"code": "invalid", "detail": "no"})

    with pytest.raises(ScoregateError):
        call(answered(refused))
    return {name: value for name, value in sent[0].items() if name != "images"}


def test_the_objects_of_a_ranking_are_fields_of_its_request(answered):
    """An argument that is left out sends no field, apart from what to do with failures."""
    plain = {"prompt": "x", "metric": "vqascore", "on_error": "raise", "priority": "interactive"}

    assert plain == request_to(answered, lambda client: client.rank("x", PICTURES))
    assert plain | {
        "top_k": 1,
        "threshold": 0.5,
        "on_error": "block",
        "cascade": {"metric": "clipscore", "keep": 2},
        "on_deadline": "cheap",
        "start": 1,
        "fps": 2,
    } == request_to(
        answered,
        lambda client: client.rank(
            "x",
            PICTURES,
            accept=Accept(top_k=1, threshold=0.5, on_error="block"),
            cascade=Cascade("clipscore", keep=2, on_deadline="cheap"),
            span=TimeSpan(1, fps=2),
        ),
    )


def test_the_pairing_of_a_comparison_is_fields_of_its_request(answered):
    """All pairs are the default."""
    plain = {"prompt": "x", "schedule": "all", "priority": "interactive"}
    swiss = {"kind": "swiss", "pairs_per_image": 4}

    assert plain == request_to(answered, lambda client: client.compare("x", PICTURES))
    assert plain | {"schedule": swiss, "noise": 0.1} == request_to(
        answered, lambda client: client.compare("x", PICTURES, pairs=Pairing(swiss, noise=0.1))
    )


@pytest.mark.parametrize(
    "name", ["score", "score_items", "rank", "compare", "stream", "matrix", "score_many"]
)
def test_a_method_has_at_most_twelve_parameters(name):
    """What belongs to one topic is one object: a caller reads the signature in one go."""
    assert len(inspect.signature(getattr(AsyncClient, name)).parameters) <= 12
