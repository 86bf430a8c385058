"""Means, skills and the matrix of generators: what the tables of the page say."""

import numpy as np
import pytest
from scipy.stats import bootstrap

from scoregate.report.comparisons import matrices
from scoregate.report.means import MAX_BARS, Bar, MeanInterval, bar, domain_of, interval, means, skills
from scoregate.report.parts import MissingPartError
from scoregate.report.rows import Columns
from tests.unit.client.report.conftest import row, texts

RANDOM = np.random.default_rng(7)


def test_the_interval_is_scipys_bootstrap():
    """Where every picture is an item of its own; both draw 1,000 times."""
    values = RANDOM.normal(size=80)
    found = interval(values, [str(place) for place in range(80)])
    expected = bootstrap((values,), np.mean, n_resamples=1000, method="percentile", rng=1).confidence_interval

    assert values.mean() == pytest.approx(found.mean)
    assert tuple(expected) == pytest.approx((found.low, found.high), abs=0.05 * values.std())


def test_the_interval_is_the_same_in_every_run():
    """It is drawn with a seed."""
    assert interval([1, 2, 3, 5], [*"abcd"]) == interval([1, 2, 3, 5], [*"abcd"])


def test_items_are_drawn_with_all_their_pictures():
    """Ten copies of two pictures say no more than the two."""
    two, copies = interval([0.0, 1.0], [*"ab"]), interval([0.0, 1.0] * 10, [*"ab"] * 10)

    assert (two.low, two.high) == (copies.low, copies.high) == (0.0, 1.0)


def test_one_item_has_no_interval():
    """Nothing is known of others."""
    assert MeanInterval(0.5, None, None, 2) == interval([0.25, 0.75], [*"aa"])


def test_all_pictures_stand_before_each_generator(scored):
    """With the counts of both, and people's ratings in a table of their own."""
    rows = [row(0.2, "a", model="old", human=1.0), row(0.6, "a", model="new", human=4.0), row(model="new")]
    lines = texts(means(scored(*rows)))

    assert lines[:5] == [
        "vqascore",
        "generator mean 95 % interval n no score",
        "all 0.4000 – 2 1",
        "new 0.6000 – 1 1",
        "old 0.2000 – 1 0",
    ]
    assert ["people: people", "generator mean 95 % interval n no rating", "all 2.5000 – 2 1"] == lines[5:8]


def test_a_cell_without_a_generator_is_a_group_of_its_own(scored):
    """No row is dropped."""
    assert "(empty) 0.2000 – 1 0" in texts(means(scored(row(0.2), row(0.4, model="new"))))


def test_ratings_outside_the_scale_are_counted(scored):
    """The page says how many there were."""
    assert "3 ratings outside the scale are left out." in texts(means(scored(row(0.2), out_of_scale=3)))


def test_skills_are_those_of_the_column(scored):
    """A mean for each."""
    found = scored(
        row(0.2, "a", skill=["colour"]), row(0.4, "b", skill=["colour"]), row(0.9, skill=["count"])
    )
    lines = texts(skills(found))

    assert "vqascore by skill" == lines[0]
    assert "count 0.9000 – 1 0" == lines[-1]
    assert lines[2].startswith("colour 0.3000 0.2000 to 0.4000 2 0")


def test_skills_and_generators_have_a_matrix_of_means(scored):
    """A pair without a picture is empty; without generators there is none."""
    rows = [
        row(score, item, skill=[skill], model=model)
        for score, item, skill, model in (
            (0.2, "a", "colour", "x"),
            (0.4, "b", "colour", "x"),
            (0.9, "a", "colour", "y"),
            (0.5, "c", "count", "y"),
        )
    ]
    lines = texts(skills(scored(*rows)))
    place = lines.index("vqascore by skill and generator")

    assert ["skill x y", "colour 0.3000 0.9000", "count 0.5000"] == lines[place + 1 : place + 4]
    without = scored(row(0.2, "a", skill=["colour"]))
    assert "vqascore by skill and generator" not in texts(skills(without))


def test_a_metrics_own_skills_need_no_column(scored):
    """Each is a mean over the pictures that have it."""
    rows = [
        row(0.5, parts={"skills": {"style": 1.0, "view": 0.0}}),
        row(0.5, parts={"skills": {"style": 0.5}}),
    ]
    found = scored(*rows, metrics=("vqascore", "skills"), columns=Columns())

    assert [
        "skills by its own skills",
        "skill mean 95 % interval n",
        "style 0.7500 – 2",
        "view 0.0000 – 1",
    ] == texts(skills(found))


def test_without_any_skill_the_section_says_so(scored):
    """In one line."""
    with pytest.raises(MissingPartError, match="--skill"):
        skills(scored(row(0.5), columns=Columns()))


def test_too_many_groups_are_counted_and_not_drawn(scored):
    """The largest stay."""
    rare = [row(0.5, skill=[f"rare {number}"]) for number in range(MAX_BARS + 1)]
    lines = texts(skills(scored(*rare, row(0.5, skill=["often"]), row(0.5, skill=["often"]))))

    assert "often 0.5000 – 2 0" in lines
    assert MAX_BARS == sum(line.endswith(" – 1 0") for line in lines) + 1
    assert "2 smaller groups are not shown." == lines[-1]


@pytest.mark.parametrize(
    ("values", "domain"),
    [((0.2, 0.9), (0.0, 1.0)), ((2.0, 5.0), (0.0, 5.0)), ((-0.5, 0.5), (-0.5, 0.5)), ((-3, -1), (-3, 0.0))],
)
def test_bars_begin_at_0(values, domain):
    """And end at 1 where all values lie there."""
    found = [bar("", [], lambda row: None)]
    found += [Bar("", MeanInterval(value, None, None, 1), 0) for value in values]

    assert domain == domain_of(found)


def rivals(better, worse, people=(5.0, 1.0)):
    """Twenty items of two generators."""
    return [
        row(score + place / 1000, f"item {place}", model=model, human=rating + place % 2)
        for place in range(20)
        for model, score, rating in (("good", better, people[0]), ("bad", worse, people[1]))
    ]


def test_the_best_generator_stands_first_with_its_relations(scored):
    """Beside people's, and with the number of pairs that agree."""
    lines = texts(matrices(scored(*rivals(0.9, 0.1)), 0.001))

    assert ["vqascore", "good bad"] == lines[:2]
    assert lines[2].startswith("good > p")
    assert lines[3].startswith("bad < p")
    assert "people: people" == lines[4]
    assert lines[8].startswith("The metric gives people's relation in 1 of 1 pairs, by the 40 pictures")


def test_pairs_have_their_difference_and_wins_over_all_metrics(scored):
    """As `scoregate versus` computes them, with p corrected for the number of metrics."""
    rows = [each | {"scores": each["scores"] | {"dsg": 0.5}} for each in rivals(0.9, 0.1)]
    lines = texts(matrices(scored(*rows, metrics=["vqascore", "dsg"]), 0.001))

    assert [line for line in lines if line.startswith("good – bad vqascore 0.8000 – 20, 0, 0 ")]
    assert "good – bad dsg 0.0000 – 0, 20, 0 1.0000 1.0000 – –" in lines


def test_a_metric_whose_lower_scores_are_better_is_turned(scored):
    """The generator with the low scores is the better one."""
    found = texts(matrices(scored(*rivals(0.1, 0.9), lower=frozenset({"vqascore"})), 0.001))

    assert found[2].startswith("good > p")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([row(0.1, model="a"), row(0.2, model="a")], "vqascore: model: there is one generator, a"),
        ([row(0.1, "x", model="a"), row(0.2, "y", model="b")], "vqascore: item: a and b share no item"),
        ([row(0.5, model="a"), row(0.5, model="b")], "vqascore: scores: all values are 0.5"),
        ([row(0.1), row(0.2)], "vqascore: no row has a score, a generator and an item"),
    ],
)
def test_a_matrix_that_cannot_be_drawn_says_why(scored, rows, why):
    """In one line."""
    [line, _] = texts(matrices(scored(*rows), 0.001))

    assert line.startswith(why)


def test_constant_ratings_leave_the_metrics_matrix(scored):
    """The line stands where people's would be."""
    rows = [each | {"human": 3.0} for each in rivals(0.9, 0.1)]
    lines = texts(matrices(scored(*rows), 0.001))

    assert lines[2].startswith("good > p")
    assert "vqascore beside people: scores or ratings: all values are 3" == lines[4]


def test_rows_without_a_generator_are_counted(scored):
    """Below the matrix."""
    lines = texts(matrices(scored(*rivals(0.9, 0.1), row(0.5)), 0.001))

    assert "1 rows without a score, a generator or an item are left out." in lines


def test_without_a_column_of_generators_the_section_says_so(scored):
    """With the argument that names it."""
    with pytest.raises(MissingPartError, match="--generator"):
        matrices(scored(row(0.5), columns=Columns()), 0.001)
