"""The order of ranked pictures, which are accepted, and what leaves nothing to answer: without a model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.errors import (
    DeadlineExceeded,
    ImageFailed,
    ImageUndecodable,
    LaneFull,
    ModelFault,
    NotReady,
)
from service.metrics.common.contract import Score
from service.scoring.plan import UnopenedItem
from service.scoring.ranking import Cascade, Rule, best, ranking, refuse
from service.scoring.report import ItemReport, Report

BROKEN, LATE, REFUSED = ImageUndecodable("broken"), DeadlineExceeded(stage="queue"), NotReady("gone")


def by(**outcomes):
    """What came of a picture by metric; a number is a score."""
    return {name: Score(one, {}) if isinstance(one, float) else one for name, one in outcomes.items()}


def shown(outcomes, rule):
    """(index, metric that decided, accepted) of each place."""
    return [(place.index, place.decided_by, place.accepted) for place in ranking(outcomes, rule)]


def test_the_best_come_first_and_of_equals_the_first_of_the_request():
    """So that the same request gets the same answer."""
    outcomes = [by(dear=0.2), by(dear=0.9), by(dear=0.2), by(dear=0.9), by(dear=-1.0)]

    assert [1, 3, 0, 2, 4] == [index for index, _, _ in shown(outcomes, Rule("dear"))]


@pytest.mark.parametrize(
    ("top_k", "threshold", "accepted"),
    [(None, None, [3, 1, 0, 2]), (2, None, [3, 1]), (None, 0.5, [3, 1, 0]), (2, 0.9, [3]), (9, 2.0, [])],
)
def test_accepted_are_those_within_top_k_that_reach_the_threshold(top_k, threshold, accepted):
    """A score that equals it reaches it."""
    outcomes = [by(dear=0.5), by(dear=0.7), by(dear=0.4), by(dear=0.9)]

    places = shown(outcomes, Rule("dear", top_k=top_k, threshold=threshold))
    assert accepted == [index for index, _, taken in places if taken]


def test_those_cut_stand_behind_by_the_cheap_metric_and_are_not_accepted():
    """However well they did there, and however badly those did that went on."""
    outcomes = [by(cheap=0.1), by(cheap=0.9, dear=0.2), by(cheap=0.3), by(cheap=0.8, dear=0.1)]

    assert [(1, "dear", True), (3, "dear", True), (2, "cheap", False), (0, "cheap", False)] == shown(
        outcomes, Rule("dear", Cascade("cheap", 2))
    )


def test_the_threshold_is_of_the_metric_alone():
    """A cheap score below it costs nobody his place."""
    outcomes = [by(cheap=0.1, dear=0.9), by(cheap=0.8, dear=0.2)]

    assert [(0, "dear", True), (1, "dear", False)] == shown(
        outcomes, Rule("dear", Cascade("cheap", 2), threshold=0.5)
    )


@pytest.mark.parametrize(("on_error", "accepted"), [("pass", True), ("block", False)])
def test_pictures_that_failed_are_last_by_index_and_use_up_no_place_of_top_k(on_error, accepted):
    """Whichever metric they failed under."""
    outcomes = [by(cheap=BROKEN), by(cheap=0.9, dear=ModelFault()), by(cheap=0.8, dear=0.5), by(cheap=0.1)]
    places = ranking(outcomes, Rule("dear", Cascade("cheap", 2), top_k=1, on_error=on_error))

    assert [2, 3, 0, 1] == [place.index for place in places]
    assert [True, False, accepted, accepted] == [place.accepted for place in places]
    assert [None, None, ("cheap", "image_undecodable"), ("dear", "model_fault")] == [
        place.failed and (place.failed[0], place.failed[1].code) for place in places
    ]


@pytest.mark.parametrize(
    ("threshold", "accepted"), [(None, [True, True, False, False]), (0.1, [True] + [False] * 3)]
)
def test_the_cheap_metric_stands_in_for_what_is_late_and_passes_no_threshold(threshold, accepted):
    """They stand before those cut; without a threshold they may be accepted, those cut never."""
    outcomes = [by(cheap=0.7, dear=LATE), by(cheap=0.9, dear=LATE), by(cheap=0.8, dear=0.3), by(cheap=0.1)]
    rule = Rule("dear", Cascade("cheap", 3), top_k=2, threshold=threshold, on_deadline="cheap")

    assert [(2, "dear"), (1, "cheap"), (0, "cheap"), (3, "cheap")] == [
        each[:2] for each in shown(outcomes, rule)
    ]
    assert accepted == [taken for _, _, taken in shown(outcomes, rule)]


def report(*outcomes):
    return Report(
        [ItemReport(UnopenedItem("", [], place=f"/images/{n}"), one) for n, one in enumerate(outcomes)]
    )


def test_a_picture_that_failed_refuses_a_ranking_that_asked_for_it_and_is_named():
    """All of them are; a deadline or a refusal of others makes no difference, since they would fail again."""
    outcomes = report(by(dear=LATE), by(dear=BROKEN), by(dear=0.5), by(dear=ModelFault()), by(dear=REFUSED))
    with pytest.raises(ImageFailed, match=r"/images/1: broken \(and 1 more\)") as refused:
        refuse(outcomes, Rule("dear"))

    assert [("/images/1", "image_undecodable"), ("/images/3", "model_fault")] == [
        (fault.pointer, fault.code) for fault in refused.value.faults
    ]


@pytest.mark.parametrize("on_error", ["raise", "pass", "block"])
def test_a_lack_of_time_refuses_a_ranking_whatever_is_said_of_errors(on_error):
    """It is no fault of a picture.  The late ones are named."""
    with pytest.raises(DeadlineExceeded) as refused:
        refuse(report(by(dear=0.5), by(dear=LATE)), Rule("dear", on_error=on_error))

    assert ["/images/1"] == [fault.pointer for fault in refused.value.faults]


def test_the_cheap_metric_stands_in_for_the_other_and_not_for_itself():
    """In the first stage there is nothing to order by."""
    rule = Rule("dear", Cascade("cheap", 1), on_deadline="cheap")

    refuse(report(by(dear=LATE), by(dear=LATE)), rule)
    with pytest.raises(DeadlineExceeded):
        refuse(report(by(cheap=0.5), by(cheap=LATE)), rule)


def test_refusals_are_told_as_such_where_nothing_is_left_or_an_error_may_not_pass():
    """Later the same request may be answered, so it is no fault of a picture."""
    some, every = report(by(dear=0.5), by(dear=REFUSED)), report(by(dear=REFUSED), by(dear=LaneFull()))

    for outcomes, on_error in [(some, "raise"), (every, "raise"), (every, "pass"), (every, "block")]:
        with pytest.raises(NotReady):
            refuse(outcomes, Rule("dear", on_error=on_error))
    refuse(some, Rule("dear", on_error="pass"))
    refuse(report(), Rule("dear"))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # many are equal
CHEAP = st.one_of(VALUES, st.just(BROKEN))
DEAR = st.one_of(VALUES, st.just(BROKEN), st.just(LATE))
RULES = st.builds(
    Rule,
    metric=st.just("dear"),
    cascade=st.builds(Cascade, metric=st.just("cheap"), keep=st.integers(1, 6)),
    top_k=st.none() | st.integers(1, 6),
    threshold=st.none() | VALUES,
    on_error=st.sampled_from(["pass", "block"]),
    on_deadline=st.just("cheap"),
)


@pytest.mark.slow
@settings(derandomize=True, max_examples=500, database=None)
@given(st.lists(st.tuples(CHEAP, DEAR), max_size=8), RULES)
def test_whatever_comes_of_pictures_each_has_one_place_and_none_is_accepted_for_nothing(drawn, rule):
    """As the rule says it: scored, then late, then cut, then failed; accepted only as asked."""
    outcomes = [by(cheap=cheap) for cheap, _ in drawn]
    for index in best(outcomes, "cheap", rule)[: rule.cascade.keep]:
        outcomes[index] |= by(dear=drawn[index][1])
    places = ranking(outcomes, rule)

    assert sorted(place.index for place in places) == list(range(len(drawn)))
    groups = [group(outcomes[place.index]) for place in places]
    assert groups == sorted(groups)
    assert len([place for place in places if place.accepted and not place.failed]) <= (
        rule.top_k or len(drawn)
    )
    for place in places:
        outcome = outcomes[place.index].get("dear")
        if place.failed:
            assert place.accepted == (rule.on_error == "pass")
        elif place.accepted:
            assert outcome is not None
            assert rule.threshold is None or outcome.value >= rule.threshold


def group(outcomes):
    """0 for a picture that was scored, then late, cut, failed."""
    cheap, dear = outcomes["cheap"], outcomes.get("dear")
    if BROKEN in (cheap, dear):
        return 3
    return 2 if dear is None else 1 if dear is LATE else 0
