"""What the factories of scoregate.trainers return: pickled for processes that are spawned, and for Ray."""

import asyncio
import inspect
import pickle
from functools import partial

import pytest

from scoregate.trainers import Reward, flow_grpo, trl
from tests.support.pictures import png

BOTH = {"vqascore": 0.5, "clipscore": 2.0}
TRL = {"completions": [], "pictures": [png()] * 2}

CALLS = {
    "Reward": (Reward, lambda made: made([png()] * 2, ["0.001", "0.002"])),
    "trl.reward_function": (trl.reward_function, lambda made: made(["0.001", "0.002"], **TRL)),
    "a partial of it": (
        lambda **given: partial(trl.reward_function(**given)),
        lambda made: made(["0.001", "0.002"], **TRL),
    ),
    "its asynchronous form": (
        partial(trl.reward_function, asynchronous=True),
        lambda made: asyncio.run(made(["0.001", "0.002"], **TRL)),
    ),
    "flow_grpo.factory": (flow_grpo.factory, lambda made: made("cuda")([png()] * 2, ["0.001", "0.002"])[0]),
    "what it makes": (
        lambda **given: flow_grpo.factory(**given)(),
        lambda made: made([png()] * 2, ("0.001", "0.002"), [{}] * 2)[0],
    ),
    "flow_grpo.multi_score": (
        lambda **given: flow_grpo.multi_score("cuda", {"vqascore": 1.0}, **given),
        lambda made: made([png()] * 2, ["0.001", "0.002"], [{}] * 2, only_strict=True)[0]["avg"],
    ),
}


@pytest.mark.parametrize(("make", "call"), CALLS.values(), ids=CALLS)
def test_what_a_factory_returns_scores_after_it_was_pickled(scripted, make, call):
    """As before; connections are those of the process that calls it."""
    _, double = scripted()
    made = make(transport=double.transport)

    assert [0.001, 0.002] == call(made) == call(pickle.loads(pickle.dumps(made)))


@pytest.mark.parametrize("name", ["t2i_score", "t2i_score_logit", "t2i_score_eval"])
def test_the_factories_of_flow_grpo_are_functions_to_it(name):
    """It searches their code for the name `device`, also after they were pickled."""
    made = getattr(flow_grpo, name)
    for each in (made, pickle.loads(pickle.dumps(made))):
        assert "device" in each.__code__.co_varnames


def test_a_reward_of_trl_is_awaited_only_where_that_was_requested():
    """TRL decides by this, and logs its name."""
    made = [trl.reward_function(asynchronous=asynchronous) for asynchronous in (False, True)]

    assert [False, True] == [inspect.iscoroutinefunction(pickle.loads(pickle.dumps(each))) for each in made]
    assert ["vqascore"] * 2 == [pickle.loads(pickle.dumps(each)).__name__ for each in made]
