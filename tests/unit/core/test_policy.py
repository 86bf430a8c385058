"""Policies: what is decided, why, and what is decided of unknown scores; without a service."""

import pytest

from service.core.expression import Condition, Formula
from service.core.policy import Policy
from tests.support.paths import ROOT

ACCEPT = "a >= 0.62 and (b >= 0.5 or c >= 0.8)"
UNKNOWN = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
SHOW = Policy(Condition.of(ACCEPT), Condition.of("a >= 0.4"))


def decided(policy, errors=None, **scores):
    """The decision, its reason, and the sentence."""
    outcome = policy.decide({**UNKNOWN, **scores}, errors or {})
    return outcome.decision, outcome.reason, outcome.because


def test_the_client_has_the_same_module():
    """Byte for byte: neither package installs the other one."""
    files = ROOT / "service/core/policy.py", ROOT / "client/src/scoregate/policy.py"

    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("scores", "decision", "because"),
    [
        ({"a": 0.91, "b": 1.0}, "accept", "a 0.91 >= 0.62 and b 1.0 >= 0.5"),
        ({"a": 0.91, "b": 0.1, "c": 0.9}, "accept", "a 0.91 >= 0.62 and c 0.9 >= 0.8"),
        ({"a": 0.5}, "review", "a 0.5 < 0.62 and a 0.5 >= 0.4"),
        (
            {"a": 0.7, "b": 0.1, "c": 0.2},
            "review",
            "b 0.1 < 0.5 and c 0.2 < 0.8 and a 0.7 >= 0.4",
        ),
        ({"a": 0.91, "b": 0.6, "c": 0.9}, "accept", "a 0.91 >= 0.62 and b 0.6 >= 0.5"),
        ({"a": 0.25}, "reject", "a 0.25 < 0.62 and a 0.25 < 0.4"),
    ],
)
def test_a_decision_has_the_comparisons_from_which_it_follows(scores, decision, because):
    """Without the parts that do not matter; a comparison that fails stands with the opposite sign."""
    assert (decision, "expression", because) == decided(SHOW, **scores)


@pytest.mark.parametrize(
    ("accept", "scores", "decision", "because"),
    [
        ("a >= 0.62", {"a": 0.6199999999}, "reject", "a 0.6199999999 < 0.62"),
        ("a == 0.62", {"a": 0.6200000001}, "reject", "a 0.6200000001 != 0.62"),
        ("a >= 0.62000001", {"a": 0.62000001}, "accept", "a 0.62000001 >= 0.62000001"),
        ("a > b", {"a": 0.1 + 0.2, "b": 0.3}, "accept", "a 0.30000000000000004 > b 0.3"),
        ("a >= 0.62", {"a": 0.6123456789}, "reject", "a 0.612346 < 0.62"),
        ("1 / (a - 0.5) > 0", {"a": 0.500000001}, "accept", "1.0 / (a 0.500000001 - 0.5) > 0.0"),
    ],
)
def test_the_comparisons_hold_with_the_scores_as_they_are_shown(accept, scores, decision, because):
    """Scores have six digits, and all of them where six would contradict the decision; limits have all."""
    assert (decision, "expression", because) == decided(Policy(Condition.of(accept)), **scores)


def test_sides_are_shown_with_their_scores_and_parentheses():
    policy = Policy(Condition.of("not (min(a, 2 * (b - c)) / 2 > -b + 1)"))

    assert decided(policy, a=0.5, b=0.25, c=0.125) == (
        "accept",
        "expression",
        "min(a 0.5, 2.0 * (b 0.25 - c 0.125)) / 2.0 <= -b 0.25 + 1.0",
    )


@pytest.mark.parametrize(
    ("side", "shown"),
    [
        ("a - b + c", "a 0.5 - b 0.25 + c 0.125"),
        ("a - (b + c)", "a 0.5 - (b 0.25 + c 0.125)"),
        ("a - b * c", "a 0.5 - b 0.25 * c 0.125"),
        ("(a - b) * c", "(a 0.5 - b 0.25) * c 0.125"),
        ("a / b * c", "a 0.5 / b 0.25 * c 0.125"),
        ("a / (b * c)", "a 0.5 / (b 0.25 * c 0.125)"),
    ],
)
def test_parentheses_stand_only_where_the_value_would_differ_without_them(side, shown):
    """An operator is applied from the left, and `*` before `-`."""
    policy = Policy(Condition.of(f"{side} > -9"))

    assert f"{shown} > -9.0" == decided(policy, a=0.5, b=0.25, c=0.125)[2]


def test_an_unknown_score_is_said_where_it_does_not_matter():
    """The largest of two is at least the one that is known."""
    policy = Policy(Condition.of("max(a, b) >= 0.5"))

    assert ("accept", "expression", "max(a 0.6, b unknown) >= 0.5") == decided(policy, a=0.6)


@pytest.mark.parametrize(
    ("without_score", "scores", "decision"),
    [
        ("reject", {}, "reject"),
        ("accept", {}, "accept"),
        ("review", {}, "review"),
        ("reject", {"a": 0.7}, "review"),  # at least 0.4, so it cannot be rejected
        ("accept", {"a": 0.7}, "accept"),
    ],
)
def test_several_possible_decisions_are_that_without_a_score_or_the_strictest(
    without_score, scores, decision
):
    """Where `without_score` is not possible any more, the strictest possible decision is made."""
    policy = Policy(SHOW.accept, SHOW.review, without_score)

    assert decision == decided(policy, **scores)[0]


def test_errors_are_named_and_what_was_not_started_is_late():
    """Only those on which the decision depends; errors before what was not started."""
    both = decided(SHOW, {"b": "lane_full", "c": "model_fault"}, a=0.7)
    one = decided(SHOW, {"a": "deadline_exceeded"})
    started = decided(SHOW, a=0.7, b=0.1)

    assert ("review", "lane_full", "without_score: b lane_full, c model_fault") == both
    assert ("reject", "deadline_exceeded", "without_score: a deadline_exceeded") == one
    assert ("review", "deadline_exceeded", "without_score: c deadline_exceeded") == started


def test_an_error_that_does_not_matter_does_not_decide():
    assert "expression" == decided(SHOW, {"b": "model_fault"}, a=0.1)[1]


def test_scores_without_a_value_decide_without_a_score():
    """A quotient by a score of 0, with nothing left to wait for."""
    policy = Policy(Condition.of("a / b > 1"), without_score="review")

    because = "without_score: an expression has no value for these scores"
    assert ("reject", "no_value", because) == decided(policy, a=0.5, b=0.0)
    assert ("accept", "expression") == decided(policy, a=0.5, b=0.25)[:2]


@pytest.mark.parametrize(
    "code", ["bad_image", "not_base64", "image_undecodable", "image_too_large", "no_frames"]
)
def test_a_picture_that_cannot_be_read_decides_by_itself(code):
    """Whatever `without_score` says, and what other metrics say; a failed download is no such error."""
    policy = Policy(SHOW.accept, None, without_score="accept", unreadable="review")

    assert ("review", "unreadable", f"unreadable: {code}") == decided(policy, {"a": code}, b=1.0)
    assert ("accept", "url_failed") == decided(policy, {"a": "url_failed"})[:2]


def test_open_are_the_metrics_that_may_still_change_it():
    """First those of `accept`, then those of `review`, which matter only if it does not hold."""
    policy = Policy(Condition.of("a > 0.5 or (b > 0.5 and c > 0.5)"), Condition.of("c > 0.2"))

    def opened(**scores):
        return [*policy.open({**UNKNOWN, **scores})]

    assert [["a", "b", "c"], ["c"]] == opened()
    assert [["a"], ["c"]] == opened(b=0.1)
    assert [["c"]] == opened(a=0.1, b=0.1)
    assert [] == opened(a=0.9)
    assert [] == opened(a=0.1, b=0.1, c=0.1)


def test_the_metrics_of_a_policy_are_those_of_its_expressions():
    policy = Policy(SHOW.accept, None, rank_by=Formula.of("d + a"))

    assert ["a", "b", "c"] == policy.deciding
    assert ["d", "a"] == policy.ranking
    assert ["a", "b", "c", "d"] == policy.metrics
    assert [] == SHOW.ranking
