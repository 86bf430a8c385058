"""Clients of rerankers, and vLLM's pairs."""

from service.images.loader import Base64, Url
from service.web.dialects.scoring import shared


def test_a_source_that_stands_there_again_is_one_picture():
    """However many texts go with it; two that are alike are only told to be the same by their address."""
    one, like, at, there = Base64("abc"), Base64("abc"), Url("http://a/b"), Url("http://a/b")
    found = shared([one, like, at, one, there])

    assert found[0] is found[3]
    assert found[2] is found[4]
    assert 3 == len(set(map(id, found)))
