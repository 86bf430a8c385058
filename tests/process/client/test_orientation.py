"""`orient`: pictures that the service is to turn by their EXIF orientation."""

from scoregate import Item
from tests.support.turned import turned

PHONE, PROMPT = turned(), "a red square"


def test_an_item_is_turned_where_it_says_so(client):
    """And its score is another one than that of the picture as it is stored."""
    items = [
        Item(prompt=PROMPT, image=PHONE),
        Item(prompt=PROMPT, image=PHONE, orient="as_stored"),
        Item(prompt=PROMPT, image=PHONE, orient="exif"),
    ]
    usual, stored, upright = client.score_items(items)

    assert usual.scores == stored.scores
    assert stored.scores != upright.scores


def test_a_ranking_turns_all_its_pictures(client):
    """The score is that of the turned picture."""
    [upright] = client.score_items([Item(prompt=PROMPT, image=PHONE, orient="exif")])
    [ranked] = client.rank(PROMPT, [PHONE], orient="exif")

    assert upright.scores["vqascore"] == ranked.score
