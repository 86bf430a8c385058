"""Semantic error graphs: pictures have the errors they are counted for; the measures are the paper's."""

from random import Random

import pytest

from demo.training.language import Mention, Statement
from demo.training.world import RELATIONS, Scene, relation
from loadtest.quality import graphs as drawn
from loadtest.quality.graphs import LEVELS, Target, cells, graph, sample_target, with_errors
from loadtest.quality.meta import Scored, estimate, rank, separation
from loadtest.quality.plot import plot

# SEG 0 of the released data with the scores of `blip1_dsg`.
SEG_0 = [
    Scored(0, [1.0]),
    Scored(1, [0.6, 0.8, 0.6, 0.6, 0.6]),
    Scored(1, [0.8, 1.0, 0.8]),
    Scored(2, [0.2, 0.2, 0.6]),
]


def test_rank_and_separation_of_a_released_graph_are_those_of_the_released_code():
    """To six digits."""
    assert 0.860597 == round(rank(SEG_0), 6)
    assert 0.866667 == round(separation(SEG_0), 6)


def test_separation_of_neighbours_leaves_out_what_lies_further_apart():
    """0 errors against 2 is the easiest pair."""
    assert (1 + 2 / 3 + 2 / 3 + 1) / 4 == pytest.approx(separation(SEG_0, apart=1))


def test_a_metric_that_turns_everything_round_has_a_rank_of_minus_one_and_the_same_separation():
    """Separation does not know which is better."""
    good = [Scored(0, [1.0, 0.9]), Scored(1, [0.5, 0.4]), Scored(2, [0.1, 0.2])]
    bad = [Scored(node.level, [-score for score in node.scores]) for node in good]

    assert rank(good) > 0.9
    assert rank(good) == pytest.approx(-rank(bad))
    assert 1 == separation(good) == separation(bad)


def test_a_metric_that_always_says_the_same_has_no_rank_and_no_separation():
    """Spearman's rho is not defined there; the paper counts 0."""
    flat = [Scored(level, [0.5, 0.5]) for level in range(3)]

    assert (0, 0) == (rank(flat), separation(flat))


def test_an_interval_holds_the_mean_and_is_the_same_for_the_same_seed():
    """Graphs are drawn again, not pictures: those of a graph belong together."""
    other = [Scored(level, [0.5, 0.5]) for level in range(3)]
    found = estimate([SEG_0, SEG_0, other], rank, seed=1)

    assert 2 / 3 * 0.860597 == pytest.approx(found.value, abs=1e-6)
    assert found.low < found.value < found.high
    assert found == estimate([SEG_0, SEG_0, other], rank, seed=1)
    assert 0.860597 == pytest.approx(estimate([SEG_0], rank, seed=1).low, abs=1e-6)


def scene(target: Target, errors, random: Random, monkeypatch) -> Scene:
    """What a picture with these errors is drawn from."""
    scenes = []
    with monkeypatch.context() as patched:
        patched.setattr(drawn, "draw", lambda scene, side: scenes.append(scene))
        drawn.picture(target, errors, random)
    return scenes[0]


def statement(target: Target) -> Statement:
    first, *others = (Mention(*look) for look in target.looks)
    if target.number:
        return Statement("count", first, number=target.number)
    return Statement("relation" if target.relation else "binding", first, *others, target.relation or None)


@pytest.mark.parametrize("seed", range(60))
def test_a_prompt_is_true_without_errors_and_false_with_any(seed, monkeypatch):
    """As the demo world's own rules say."""
    random = Random(seed)
    target = sample_target(random)
    asked = statement(target)

    assert target.prompt == asked.text
    assert asked.true_in(scene(target, (), random, monkeypatch)) is True
    for fact in target.facts:
        assert asked.true_in(scene(target, (fact,), random, monkeypatch)) is False, (target, fact)


def parts(target: Target) -> list[object]:
    """Each fact by itself."""
    return [*(part for look in target.looks for part in look), target.relation, target.number]


@pytest.mark.parametrize("seed", range(20))
def test_an_error_leaves_all_other_facts_as_they_are(seed):
    """So the number of errors is what it says."""
    random = Random(seed)
    target = sample_target(random)
    for fact in target.facts:
        shown = with_errors(target, (fact,), random)
        changed = [one != other for one, other in zip(parts(target), parts(shown), strict=True)]
        assert 1 == sum(changed)


@pytest.mark.parametrize("name", RELATIONS)
def test_things_stand_as_their_relation_says(name):
    """First the one, then the other."""
    target = Target((("circle", "red"), ("square", "blue")), relation=name)
    random = Random(3)
    for _ in range(20):
        places = cells(target, random)
        one, other = (drawn.thing(*each, random) for each in zip(target.looks, places, strict=True))
        assert name == relation(one, other)


def test_a_graph_has_nodes_of_each_number_of_errors_and_is_the_same_for_the_same_seed():
    """The first node has none."""
    made, again = (graph(Random("seed"), nodes=2, pictures=3) for _ in range(2))

    assert [0, *(level for level in range(1, LEVELS) for _ in range(2))][: len(made.nodes)] == [
        len(node.errors) for node in made.nodes
    ]
    assert {3} == {len(node.pictures) for node in made.nodes}
    assert len(made.nodes) == len({node.errors for node in made.nodes})
    assert made.prompt == again.prompt
    assert [picture.tobytes() for node in made.nodes for picture in node.pictures] == [
        picture.tobytes() for node in again.nodes for picture in node.pictures
    ]


@pytest.mark.slow
def test_the_figures_are_drawn(tmp_path):
    """A PNG."""
    figures = {"dsg": {"rank": estimate([SEG_0], rank, 0), "separation": estimate([SEG_0], separation, 0)}}
    plot(figures, {"dsg": [SEG_0]}, tmp_path / "deep" / "quality.png")

    assert (tmp_path / "deep" / "quality.png").read_bytes().startswith(b"\x89PNG")
