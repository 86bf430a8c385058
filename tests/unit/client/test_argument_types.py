"""Arguments of the wrong type are `TypeError`, in the words of the call, before anything is sent."""

import pytest

from scoregate import Client
from scoregate.trainers import Reward

ADDRESS = "http://127.0.0.1:1"  # no call may reach it


@pytest.mark.parametrize(
    "call",
    [
        lambda client, names: client.score("a.png", "a dog", names),
        lambda client, names: client.matrix(["a.png"], ["a dog"], names),
        lambda client, names: client.rank("a dog", ["a.png"], metric=names),
        lambda client, names: client.compare("a dog", ["a.png", "b.png"], metric=names),
    ],
)
def test_a_list_of_metrics_where_one_is_taken_names_the_methods_that_take_several(call):
    """`score`, `matrix`, `rank` and `compare` take one metric."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match=r"'dsg'.*score_items and score_many"):
        call(client, ["vqascore", "dsg"])


@pytest.mark.parametrize("method", ["rank", "compare"])
def test_pictures_in_the_place_of_the_prompt_are_refused_with_the_order(method):
    """A swap is no error of a picture that cannot be read."""
    with (
        Client(ADDRESS) as client,
        pytest.raises(TypeError, match="the prompt comes first, then the pictures"),
    ):
        getattr(client, method)(["a.png", "b.png"], "a dog")


def test_metrics_that_are_no_names_are_refused():
    """A list in a list is the usual slip."""
    with Client(ADDRESS) as client, pytest.raises(TypeError, match="a name or a list of names"):
        client.score_items([("a.png", "a dog")], [["vqascore"]])


def test_a_reward_of_a_list_in_the_place_of_one_metric_names_the_argument():
    """`Reward(metrics=...)` takes several."""
    with pytest.raises(TypeError, match=r"not \['vqascore'\]; metrics= takes several"):
        Reward(["vqascore"])
