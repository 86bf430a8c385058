"""The cases that demo models are evaluated on."""

from demo.training.evaluation import cases


def test_the_held_out_cases_are_always_the_same() -> None:
    once, again = ([(c.right, c.wrong) for c in cases("count", 5, gap=0.15)] for _ in range(2))
    assert once == again
