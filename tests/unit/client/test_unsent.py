"""Pictures that cannot be encoded: they are not sent, and the others are scored and keep their places."""

import httpx2 as httpx
import pytest

from scoregate import Accept, Item
from scoregate.errors import BadImageError, UrlNotAllowedError, WarnedError
from tests.support.answers import numbered, request_of
from tests.support.pictures import png

ITEMS = [
    Item(prompt="a square 0", image="nowhere.png", id="gone"),
    Item(prompt="a square 1", image=png()),
    Item(prompt="a square 2", image=png(), references=[png("blue"), "nowhere.png"]),
    Item(prompt="a square 3", image=png("green")),
    Item(prompt="a square 4", image="http://pictures/p.png"),
]
WARNING = {"warnings": ["item 1, vqascore: it is cut"], "warning_codes": [{"code": "cut", "item": 1}]}


def test_a_picture_that_cannot_be_read_is_the_error_of_its_item(answered):
    """The others of the request have their scores, at the indices that they were given with."""
    report = answered(numbered).score_items(ITEMS)

    assert [0, 1, 2, 3, 4] == [result.index for result in report]
    assert "gone" == report[0].id
    assert [{}, {"vqascore": 1.0}, {}, {"vqascore": 3.0}, {}] == [result.scores for result in report]
    assert report.partial
    errors = {result.index: result.errors["vqascore"] for result in report if result.errors}
    assert [BadImageError, BadImageError, UrlNotAllowedError] == [type(error) for error in errors.values()]
    assert "image: cannot read 'nowhere.png': No such file or directory" == errors[0].detail
    assert errors[2].detail.startswith("references/1: cannot read 'nowhere.png'")
    with pytest.raises(BadImageError, match=r"^item 0, vqascore: image: cannot read 'nowhere.png'"):
        report.raise_for_errors()


@pytest.mark.parametrize("strict", [False, True])
def test_a_warning_is_about_the_item_as_it_was_given(answered, strict):
    """The second of the two that were sent is the fourth of those that were given."""

    def answer(request):
        return httpx.Response(200, json=numbered(request).json() | WARNING)

    report = answered(answer, strict=strict).score_items(ITEMS)

    assert [(3, "item 3, vqascore: it is cut")] == [(each.item, str(each)) for each in report.warnings]
    assert [3] == [result.index for result in report if result.warnings]
    assert strict == isinstance(report[3].errors.get("vqascore"), WarnedError)


def test_items_that_all_fail_to_be_read_are_not_requested(answered):
    """Each has its error, as if there were others beside it."""
    sent = []
    report = answered(sent.append).score_items([(f"{number}.png", "x") for number in range(2)], ["a", "b"])

    assert [] == sent
    assert [["a", "b"]] * 2 == [list(result.errors) for result in report]


def test_a_single_picture_that_cannot_be_read_is_raised(answered):
    """As any error of its metric."""
    with pytest.raises(BadImageError, match=r"^image: cannot read 'nowhere.png'"):
        answered(numbered).score("nowhere.png", "x")


def ranked(request):
    """The last picture first."""
    count = len(request_of(request)["images"])
    ranking = [{"index": index, "score": 0.5, "accepted": True} for index in reversed(range(count))]
    return httpx.Response(200, json={"ranking": ranking})


@pytest.mark.parametrize(("on_error", "accepted"), [("pass", [3, 1, 0, 2]), ("block", [3, 1])])
def test_a_picture_that_cannot_be_read_is_ranked_last(answered, on_error, accepted):
    """As one that the service cannot decode."""
    pictures = ["nowhere.png", png(), "gone.png", png("green")]
    ranking = answered(ranked).rank("x", pictures, accept=Accept(on_error=on_error))

    assert [3, 1, 0, 2] == [each.index for each in ranking]
    assert accepted == [each.index for each in ranking.accepted]
    assert [None, None, BadImageError, BadImageError] == [each.error and type(each.error) for each in ranking]
    assert [] == list(answered(ranked).rank("x", ["gone.png"], accept=Accept(on_error="block")).accepted)


def test_a_ranking_that_raises_errors_raises_that_of_such_a_picture(answered):
    """With its place, and before anything is sent."""
    with pytest.raises(BadImageError, match=r"^/images/1: cannot read 'gone.png'"):
        answered(ranked).rank("x", [png(), "gone.png"])
