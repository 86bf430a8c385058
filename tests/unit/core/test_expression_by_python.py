"""Expressions are what Python computes for each choice of numbers, with a name for each occurrence."""

import re
from contextlib import suppress
from itertools import product
from math import prod, sqrt
from statistics import fmean
from types import MappingProxyType

from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.expression import Condition, Formula, NoValueError

LITERALS = st.sampled_from(["0", "1", "2", "0.5", "3", "1e1"])


def value(computed):
    """Return what is computed; None if that has no value."""
    try:
        return computed()
    except (ZeroDivisionError, ValueError):
        return None


def every(*parts):
    return False if False in parts else None if None in parts else True


def some(*parts):
    return True if True in parts else None if None in parts else False


def opposite(part):
    return None if part is None else not part


ORACLE = MappingProxyType(
    {
        "__builtins__": {},
        **{"min": lambda *each: min(each), "max": lambda *each: max(each)},
        **{"mean": lambda *each: fmean(each), "sqrt": sqrt},
        **{"value": value, "every": every, "some": some, "opposite": opposite},
    }
)


def extended(operators, functions):
    """Return what builds larger terms from terms."""

    def terms(inner):
        return st.one_of(
            st.tuples(inner, st.sampled_from(operators), inner).map("({0[0]} {0[1]} {0[2]})".format),
            st.builds("-{}".format, inner),
            st.tuples(st.sampled_from(functions), st.lists(inner, min_size=1, max_size=3)).map(
                lambda each: f"{each[0]}({', '.join(each[1])})"
            ),
            st.builds("sqrt({})".format, inner) if "/" in operators else inner,
        )

    return terms


def terms(operators):
    """Texts of formulas over a, b and c."""
    leaves = st.sampled_from(["a", "b", "c"]) | LITERALS
    return st.recursive(leaves, extended(operators, ["min", "max", "mean"]), max_leaves=4)


def conditions(operators, signs=("<", "<=", ">", ">=", "==", "!=")):
    """Texts of conditions, each with that of its oracle; a chain has its middle twice in this one."""
    signs, term = st.sampled_from(signs), terms(operators)

    def chain(parts):
        first, pairs = parts
        sides = [first, *(side for _, side in pairs)]
        each = [f"value(lambda: {a} {sign} {b})" for (sign, b), a in zip(pairs, sides, strict=False)]
        return f"{first} {' '.join(map(' '.join, pairs))}", f"every({', '.join(each)})"

    def joined(parts):
        (a, of_a), word, (b, of_b) = parts
        return f"({a}) {word} ({b})", f"{'every' if word == 'and' else 'some'}({of_a}, {of_b})"

    return st.recursive(
        st.tuples(term, st.lists(st.tuples(signs, term), min_size=1, max_size=2)).map(chain),
        lambda inner: (
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(joined)
            | inner.map(lambda each: (f"not ({each[0]})", f"opposite({each[1]})"))
        ),
        max_leaves=3,
    )


WHOLE = st.integers(-3, 3).map(float)
KNOWN = st.fixed_dictionaries(
    dict.fromkeys("abc", WHOLE | st.tuples(WHOLE, WHOLE).map(lambda ends: tuple(sorted(ends))))
)


def outcomes(text, known, most=2048):
    """Return all values of an oracle's text, by the ends and a number between them of each occurrence."""
    names = re.findall(r"\b[abc]\b", text)
    places = iter(range(len(names)))
    code = compile(re.sub(r"\b[abc]\b", lambda _: f"n[{next(places)}]", text), "oracle", "eval")
    ends = [known[name] if isinstance(known[name], tuple) else (known[name],) for name in names]
    choices = [sorted({*each, sum(each) / len(each)}) for each in ends]
    assume(prod(map(len, choices)) <= most)
    return {eval(code, {**ORACLE, "n": numbers}) for numbers in product(*choices)}


@given(conditions("+-*", ["<", "<=", ">", ">="]), KNOWN)
def test_a_condition_is_decided_exactly_if_every_choice_of_numbers_agrees(texts, known):
    """All numbers have a value here, and the ends of the intervals are the extremes of each side."""
    text, oracle = texts
    found = outcomes(oracle, known)

    assert Condition.of(text).holds(known) is (found.pop() if len(found) == 1 else None)


@given(conditions("+-*/"), KNOWN)
def test_a_decided_condition_is_so_for_every_choice_of_numbers(texts, known):
    """With quotients and roots, too, which may have no value for some numbers."""
    text, oracle = texts
    holds = Condition.of(text).holds(known)

    assert holds is None or {holds} == outcomes(oracle, known)


@given(conditions("+-*/"), st.fixed_dictionaries(dict.fromkeys("abc", WHOLE)))
def test_a_condition_of_numbers_is_what_python_computes(texts, known):
    text, oracle = texts

    assert {Condition.of(text).holds(known)} == outcomes(oracle, known)


@given(terms("+-*/"), KNOWN)
def test_a_formula_is_what_python_computes_and_its_range_holds_that(text, known):
    """No value where Python raises, for any choice of numbers."""
    formula = Formula.of(text)
    low, high = formula.range(known)
    [*found] = outcomes(f"value(lambda: {text})", known)

    assert all(value is None or low <= value <= high for value in found)
    numbers = {name: ends[0] if isinstance(ends, tuple) else ends for name, ends in known.items()}
    try:
        assert {formula.value(numbers)} == outcomes(f"value(lambda: {text})", numbers)
    except NoValueError:
        assert {None} == outcomes(f"value(lambda: {text})", numbers)


@given(st.text(alphabet="ab.,()<>=! +-*/0123e\n", max_size=40) | st.text(max_size=20))
def test_any_text_is_an_expression_or_an_error(text):
    for kind in (Formula, Condition):
        with suppress(ValueError):
            kind.of(text)
