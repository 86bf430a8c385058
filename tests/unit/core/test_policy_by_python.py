"""Policies decide as Python does for each choice of the unknown scores, each occurrence by itself."""

from hypothesis import given
from hypothesis import strategies as st

from service.core.expression import Condition, truth
from service.core.policy import STRICTEST_FIRST, Policy, reasons
from tests.unit.core.test_expression_by_python import KNOWN, conditions, outcomes

EXACT = conditions("+-*", ["<", "<=", ">", ">="])
VERDICTS = st.sampled_from(STRICTEST_FIRST)


def chosen(accepted, reviewed):
    """The decision for one choice of numbers."""
    return "accept" if accepted else "review" if reviewed else "reject"


@given(EXACT, st.none() | EXACT, VERDICTS, KNOWN)
def test_the_decision_is_the_only_possible_one_or_that_without_a_score_or_the_strictest(
    accept, review, without_score, known
):
    """The oracle computes the decision for all ends of the intervals and a number between."""
    policy = Policy(Condition.of(accept[0]), review and Condition.of(review[0]), without_score)
    both = outcomes(f"({accept[1]}, {review[1] if review else False})", known)
    possible = {chosen(*each) for each in both}

    outcome = policy.decide(known, {})

    assert possible == policy.possible(known)
    if len(possible) == 1:
        assert possible == {outcome.decision}
        assert "expression" == outcome.reason
    else:
        strictest = next(each for each in STRICTEST_FIRST if each in possible)
        assert outcome.decision == (without_score if without_score in possible else strictest)
        assert "expression" != outcome.reason


@given(EXACT, KNOWN)
def test_an_open_condition_depends_on_a_metric_that_is_open(texts, known):
    """With those as they are, no value of another unknown decides it alone."""
    policy = Policy(Condition.of(texts[0]))
    unknown = {name for name, each in known.items() if isinstance(each, tuple)}
    [names] = [*policy.open(known)] or [[]]

    assert bool(names) is (policy.accept.holds(known) is None)
    assert set(names) <= unknown
    for name in unknown - set(names):
        for end in known[name]:
            assert policy.accept.holds(known | {name: end}) is policy.accept.holds(known)


@given(conditions("+-*"), st.fixed_dictionaries(dict.fromkeys("abc", st.integers(-3, 3).map(float))))
def test_the_comparisons_that_are_given_as_the_reason_hold(texts, known):
    """Whether the condition holds or not."""
    condition = Condition.of(texts[0])
    names = {f"{name} {known[name]}": name for name in known}

    for said in reasons(condition.tree, known, holds=condition.holds(known)):
        for text, name in names.items():
            said = said.replace(text, name)
        assert truth(Condition.of(said).tree, known) is True
