"""What requests ask of a model adds up."""

from service.serving.admission import Demand


def test_demands_add_up_in_calls_and_in_characters():
    """Those of several metrics that ask the same model, say."""
    assert Demand(5, 17) == Demand(2, 10) + Demand(3, 7)


def test_an_item_asked_several_times_takes_so_many_times_as_much():
    """Both its calls and the characters in all of them."""
    assert Demand(6, 30) == Demand(2, 10) * 3
