"""`orient`: pictures that the service is to turn by their EXIF orientation."""

import pytest

from scoregate import Item
from scoregate.requests import Asked
from scoregate.resume import key_of
from tests.support.turned import turned

PHONE, PROMPT = turned(), "a red square"


@pytest.mark.integration
def test_an_item_is_turned_where_it_says_so(client):
    """And its score is another one than that of the picture as it is stored."""
    items = [Item(PROMPT, PHONE), Item(PROMPT, PHONE, orient="as_stored"), Item(PROMPT, PHONE, orient="exif")]
    usual, stored, upright = client.score_items(items)

    assert usual.scores == stored.scores
    assert stored.scores != upright.scores


@pytest.mark.integration
def test_a_ranking_turns_all_its_pictures(client):
    """The score is that of the turned picture."""
    [upright] = client.score_items([Item(PROMPT, PHONE, orient="exif")])
    [ranked] = client.rank(PROMPT, [PHONE], orient="exif")

    assert upright.scores["vqascore"] == ranked.score


def test_a_resumed_run_tells_a_turned_picture_from_the_stored_one():
    """The lines of one do not stand for the other."""
    asked = Asked(["vqascore"], None, False, "bulk")
    ways = [Item(PROMPT, "a.jpg", orient=orient) for orient in (None, "as_stored", "exif")]

    assert 3 == len({key_of(item, asked) for item in ways})
