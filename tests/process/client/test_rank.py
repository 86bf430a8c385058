"""`rank`: against the real service, and against answers that are none."""

from scoregate import Accept, Cascade
from scoregate.errors import ImageUndecodableError
from tests.support.pictures import png

PICTURES = [png(colour) for colour in ("red", "green", "blue", "white")]


def test_pictures_come_best_first(client):
    """With the scores that `score` gives."""
    ranking = client.rank("a red square", PICTURES)
    scores = [client.score(picture, "a red square").value for picture in PICTURES]

    assert sorted(range(4), key=lambda index: -scores[index]) == [ranked.index for ranked in ranking]
    assert [scores[ranked.index] for ranked in ranking] == [ranked.score for ranked in ranking]
    assert ranking[0] == ranking.best
    assert 4 == len(ranking.accepted)
    assert {"vqa"} == ranking.models.keys()
    assert ranking.raw["request_id"] == ranking.request_id


def test_a_cascade_decides_about_those_that_it_cut(client):
    """They stand behind, and are not accepted."""
    ranking = client.rank("a red square", PICTURES, cascade=Cascade("clipscore", 2), accept=Accept(top_k=1))

    assert ["vqascore"] * 2 + ["clipscore"] * 2 == [ranked.decided_by for ranked in ranking]
    assert [True, False, False, False] == [ranked.accepted for ranked in ranking]


def test_a_picture_that_failed_has_no_score_but_its_error(client):
    """As an exception of the client."""
    *_, last = client.rank("a red square", [png()[:40], *PICTURES], accept=Accept(on_error="block"))

    assert (0, None, False, None) == (last.index, last.score, last.accepted, last.decided_by)
    assert isinstance(last.error, ImageUndecodableError)
