"""`compare`: pictures that are not sent, and answers that are none."""

import httpx2 as httpx
import pytest

from scoregate import Pair, Pairing, ScoregateError, Strength
from scoregate.errors import BadImageError
from tests.support.pictures import png

PICTURES = [png("red"), png("green")]
GOOD = {
    "ranking": [1, 0],
    "win_rates": [0.0, 1.0],
    "strengths": [{"value": -0.5, "stderr": 0.8}, {"value": 0.5, "stderr": 0.8}],
    "pairs": [{"a": 0, "b": 1, "winner": "b", "orders_agree": True}],
    "failed": [],
}
WRONG = {
    "a picture is not ranked": {"ranking": [1]},
    "a picture is ranked twice": {"ranking": [1, 1]},
    "a picture too many": {"win_rates": [0.0, 1.0, 0.5]},
    "no share": {"win_rates": [0.0, 1.5]},
    "no number": {"strengths": [{"value": None, "stderr": 0.8}, {"value": 0.5, "stderr": 0.8}]},
    "no winner": {"pairs": [{"a": 0, "b": 1, "winner": "c", "orders_agree": True}]},
    "another picture": {"pairs": [{"a": 0, "b": 7, "winner": "a", "orders_agree": True}]},
    "no pairs": {"pairs": None},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG)
def test_an_answer_that_is_no_comparison_is_an_error(answered, fields):
    """No picture wins because of it."""
    client = answered(lambda request: httpx.Response(200, json={**GOOD, **fields}))
    with pytest.raises(ScoregateError, match="the service's answer"):
        client.compare("x", PICTURES)


def test_a_picture_that_is_not_sent_fails_its_own_pairs_alone(answered):
    """Indices are those of the call; by default it is an error."""
    client = answered(lambda request: httpx.Response(200, json=GOOD))
    comparison = client.compare("x", [PICTURES[0], b"", PICTURES[1]], pairs=Pairing(on_error="fail"))

    assert [2, 0] == comparison.ranking
    assert 2 == comparison.best
    assert [0.0, None, 1.0] == comparison.win_rates
    assert [Strength(-0.5, 0.8), None, Strength(0.5, 0.8)] == comparison.strengths
    assert [Pair(0, 2, "b", True, {})] == list(comparison)
    assert [(0, 1), (1, 2)] == [(pair.a, pair.b) for pair in comparison.failed]
    assert isinstance(comparison.error(1), BadImageError)
    assert comparison.error(0) is None
    with pytest.raises(BadImageError, match="/images/1"):
        client.compare("x", [PICTURES[0], b"", PICTURES[1]])


def test_without_two_pictures_nothing_is_sent(answered):
    """All pairs have the error of the picture that cannot be encoded."""
    sent = []
    client = answered(lambda request: sent.append(request) or httpx.Response(500))
    comparison = client.compare("x", [b"", PICTURES[0]], pairs=Pairing(on_error="fail"))

    assert [] == sent
    assert [(0, 1)] == [(pair.a, pair.b) for pair in comparison.failed]
    assert [None, None] == comparison.win_rates
    with pytest.raises(BadImageError):
        _ = comparison.best


def test_a_notebook_shows_the_order(answered):
    """With win rates, strengths, and the pairs that failed."""
    error = {"code": "image_undecodable", "detail": "cut <b>"}
    raw = {**GOOD, "failed": [{"a": 0, "b": 1, "error": error}]}
    client = answered(lambda request: httpx.Response(200, json=raw))
    html = client.compare("x", PICTURES)._repr_html_()

    assert html.index(">1.000<") < html.index(">0.000<")
    assert "cut &lt;b&gt;" in html
