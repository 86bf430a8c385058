"""A metric against people, the worst pictures, cost and the head of the page."""

import re

import pytest

from scoregate.evaluation.agreement import correlation
from scoregate.evaluation.pair_accuracy import pair_accuracy
from scoregate.report.comparisons import agreement, agreement_of
from scoregate.report.gallery import title, worst
from scoregate.report.page import cost, head
from scoregate.report.parts import MissingPartError
from scoregate.report.rows import Columns, Cost
from tests.unit.client.report.conftest import row, texts

SCORES, RATINGS = [0.9, 0.1, 0.5, 0.7], [5.0, 4.0, 1.0, 2.0]
BOXES = [
    {"class": "dog", "score": 0.97, "box": [10, 20, 60, 80], "color": "red"},
    {"class": "<cat>", "score": 0.5, "box": [0, 0, 5, 5], "color": None},
]


def pairs(scores=SCORES, ratings=RATINGS):
    return [row(a, f"item {a}", human=b) for a, b in zip(scores, ratings, strict=True)]


def test_the_figures_are_those_of_evaluate(scored):
    """Beside a plot with a point for each picture."""
    drawn = agreement(scored(*pairs(), row(human=3.0), row(0.4)))
    of_all, accuracy = correlation(SCORES, RATINGS), pair_accuracy(SCORES, RATINGS).accuracy
    expected = (of_all.spearman, of_all.kendall, of_all.pearson, accuracy)

    assert [f"{value:.4f}" for value in expected] == re.findall(r"<dd>(.*?)</dd>", drawn)
    assert 4 == drawn.count("<circle")
    assert any(line.startswith("4 of 6 pictures have a score and a rating.") for line in texts(drawn))


def test_lower_scores_that_are_better_turn_the_signs(scored):
    """And the page says so."""
    drawn = agreement(scored(*pairs(), lower=frozenset({"vqascore"})))

    assert f"<dt>Spearman</dt><dd>{-correlation(SCORES, RATINGS).spearman:.4f}" in drawn
    assert "the signs are turned" in drawn


def test_of_many_pictures_some_are_drawn(scored):
    """The correlation is still that of all."""
    drawn = agreement_of(scored(*pairs()), "vqascore", paired_images=3, plot_points=2)

    assert 2 == drawn.count("<circle")
    assert f"<dt>Spearman</dt><dd>{correlation(SCORES, RATINGS).spearman:.4f}" in drawn
    assert "Pairs are those of 3 pictures drawn at random. 2 points drawn at random are shown." in drawn


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (pairs(scores=[0.5] * 4), "vqascore: scores: all 4 values are 0.5"),
        (pairs(ratings=[3.0] * 4), "vqascore: people: all 4 values are 3"),
        ([row(0.5), row(human=3.0)], "vqascore: 0 rows have a score and a rating, and two are needed"),
    ],
)
def test_what_cannot_be_compared_says_why(scored, rows, why):
    """In one line, which names the column."""
    assert [why] == texts(agreement(scored(*rows)))


def test_without_a_column_of_ratings_the_section_says_so(scored):
    """With the argument that names it."""
    with pytest.raises(MissingPartError, match="--human"):
        agreement(scored(row(0.5), columns=Columns()))


def test_the_largest_difference_of_ranks_comes_first(scored):
    """With both numbers and both ranks; pictures without a difference are not shown."""
    lines = texts(worst(scored(*pairs()), 5))

    assert "Where metric and people disagree most" == title(scored())
    assert ["0.1000, rank 4 of 4", "0.5000, rank 3 of 4", "0.7000, rank 2 of 4"] == [
        line.split("vqascore ")[1] for line in lines if "vqascore 0" in line
    ]
    assert ["4, rank 2 of 4", "1, rank 4 of 4", "2, rank 3 of 4"] == [
        line.removeprefix("people ") for line in lines if line.startswith("people ")
    ]


def test_without_ratings_the_lowest_scores_are_shown(scored):
    """As many as were asked for."""
    found = scored(*pairs(), columns=Columns())
    lines = texts(worst(found, 2))

    assert "Lowest scores" == title(found)
    assert ["0.1000", "0.5000"] == [line.split("vqascore ")[1] for line in lines if "vqascore 0" in line]


def test_of_a_metric_with_lower_better_the_highest_are_shown(scored):
    """They are the worst."""
    found = scored(*pairs(), columns=Columns(), lower=frozenset({"vqascore"}))
    lines = texts(worst(found, 1))

    assert "Worst scores" == title(found)
    assert ["0.9000"] == [line.split("vqascore ")[1] for line in lines if "vqascore 0" in line]


def shown(scored, details, picture="data:image/jpeg;base64,AA=="):
    """The card of one picture with these details."""
    found = scored(
        row(0.5, "a <b>bold</b> prompt"),
        columns=Columns(),
        details={1: {"vqascore": details}},
        pictures={1: picture},
    )
    return worst(found, 1)


def test_boxes_are_drawn_on_the_picture_and_listed(scored):
    """With the same numbers; the drawing has the picture's own measures."""
    drawn = shown(scored, {"width": 100, "height": 90, "boxes": BOXES, "reason": "expected <dog>\nno cat"})

    assert '<svg viewBox="0 0 100 90" role="img" aria-label="2 boxes of objects">' in drawn
    assert '<rect x="10" y="20" width="50" height="60"/>' in drawn
    assert {"<cat> 0.50", "expected <dog>", "no cat"} <= set(texts(drawn))
    assert any(line.endswith("red dog 0.97") for line in texts(drawn))


@pytest.mark.parametrize(
    "details",
    [
        None,
        [],
        {"boxes": "x", "questions": 3, "reason": 7},
        {"width": 0, "height": 5, "boxes": [{"class": "dog"}, 3, {"box": [1, 2, 3, "4"], "score": 1}]},
        {"questions": [{"score": None, "text": "?"}, "x", {"score": 0.9, "text": "?"}]},
    ],
)
def test_details_of_another_shape_draw_nothing(scored, details):
    """A metric of a plug-in has its own."""
    drawn = shown(scored, details)

    assert "<img" in drawn
    assert not re.search("<svg|<li>|class=.bad.", drawn)


def test_questions_that_cost_points_are_listed_with_their_answers(scored):
    """Also those that a parent made count nothing; a metric without answers has its score."""
    asked = [
        {"id": 1, "text": "Is there a <dog>?", "answer": "no", "score": 0},
        {"id": 2, "text": "Is it red?", "answer": "yes", "score": 0.0, "zeroed_by": [1]},
        {"id": 3, "text": "Is it big?", "answer": "yes", "score": 1},
        {"id": 4, "text": "Where?", "score": 0.25},
    ]
    lines = texts(shown(scored, {"questions": asked}))

    assert any(line.endswith("Is there a <dog>? no") for line in lines)
    assert {"Is it red? yes, and 1 is a no", "Where? 0.2500"} <= set(lines)
    assert not any("big" in line for line in lines)


def test_a_picture_that_cannot_be_shown_has_a_line_in_its_place(scored):
    """Its boxes are listed, and not drawn over nothing."""
    drawn = shown(scored, {"width": 9, "height": 9, "boxes": BOXES}, picture="")

    assert "no picture to show" in drawn
    assert "<svg" not in drawn
    assert "red dog" in drawn


def test_cost_is_time_and_price_for_1000_pictures(scored):
    """Over all runs; pictures that the service knew are told."""
    found = texts(cost(scored(cost=Cost(2, 500, 20, 1000.0, 3.6))))

    assert [
        "pictures requested 500, in 2 runs",
        "wall time 16.7 min",
        "pictures a second 0.5",
        "time for 1,000 pictures 33.3 min",
        "price of 1,000 pictures 2",
    ] == found[:5]
    assert "At 3.6 an hour. For 20 of them the service had the answers" in found[5]


def test_without_a_run_nothing_is_said_of_cost(scored):
    """In one line, and no number."""
    with pytest.raises(MissingPartError, match="No run"):
        cost(scored())


def test_every_row_without_a_score_is_counted_by_its_code(scored):
    """With the first of them."""
    found = scored(row(0.5), row(), row(), models={"vqa": "tiny@1"}, version="0.1.0")
    lines = texts(head(found))

    assert {"pictures 3", "with all scores 1", "without some score 2", "models vqa: tiny@1"} <= {
        line.removeprefix("drawn ") for line in lines
    }
    assert "image_undecodable vqascore 2 row 2: cut short" == lines[-1]
