"""The check of a served model each time that it comes up: known questions, and what fails is not served."""

import math

import pytest

from models.core.contract import SAME_ANSWERS, KnownCalls, UpstreamError
from models.core.examples import TOLERANCE
from models.core.outcomes import Likelihood
from service.core.errors import NotReady
from service.serving.backends.trust import NO_NUMBER, OTHER_ANSWERS, RENEW_S, UNSTEADY, Trust
from service.serving.backends.upstream import ServerFailed, Unreachable
from tests.support.clocks import Clock

pytestmark = pytest.mark.anyio

SOUND = {"red": 0.9, "blue": 0.1}


def says(yes):
    """A likelihood of that share of "Yes"."""
    return Likelihood((math.log(yes),), math.log(yes), math.log(1 - yes))


class Model:
    """Answers with what it is given, an exception too, and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked, self.clock = {**SOUND, **answers}, [], Clock()
        self.trust = Trust("m", KnownCalls.of("red", "blue", compared="shares"), self.ask, self.clock)

    async def ask(self, call):
        self.asked.append(call)
        given = self.answers[call]
        given = given.pop(0) if isinstance(given, list) else given
        if isinstance(given, Exception):
            raise given
        return says(given)


async def refused(check):
    """The reason of a check that fails."""
    with pytest.raises(NotReady) as caught:
        await check()
    return caught.value.detail


async def test_a_model_is_checked_once_until_it_is_doubted_or_was_not_for_a_minute():
    """Opposite questions, the first of them twice; calls alone cause no second check."""
    model = Model()
    for _ in range(3):
        await model.trust.check()
    once = [*model.asked]
    await model.trust.renew()
    model.clock.set(RENEW_S)
    await model.trust.check()
    calls = len(model.asked)
    await model.trust.renew()
    model.trust.doubted = True
    await model.trust.check()

    assert 60.0 == RENEW_S
    assert ["red", "blue", "red"] == once
    assert (3, 9) == (calls, len(model.asked))


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"red": 0.5, "blue": 0.5}, SAME_ANSWERS),
        ({"red": 1 - 1e-9, "blue": 1 - 1e-9}, SAME_ANSWERS),
        ({"red": [0.6, 0.59], "blue": 0.59}, SAME_ANSWERS),
        ({"red": [0.9, 0.9 - 2 * TOLERANCE]}, UNSTEADY),
        ({"red": math.nan}, NO_NUMBER),
        ({"blue": math.nan}, NO_NUMBER),
    ],
)
async def test_numbers_that_no_sound_model_gives_are_refused_until_they_are_better(answers, told):
    """Each call is told which check failed; the next look finds it mended."""
    model = Model(**answers)
    first = await refused(model.trust.check)
    asked = len(model.asked)
    again = await refused(model.trust.check)
    model.answers = SOUND
    await model.trust.renew()

    assert f"models.m is not served: it {told}" == first == again
    assert (3, "") == (asked, model.trust.fault)


async def test_near_numbers_are_plausible():
    """A random checkpoint says nearly the same of everything, and rounding moves every number."""
    model = Model(red=[0.5, 0.5 + TOLERANCE / 2, 0.5 - TOLERANCE / 3, 0.5], blue=0.5 + 1e-9)
    await model.trust.check()
    model.trust.doubted = True
    await model.trust.check()


async def test_other_numbers_than_before_are_refused():
    """Though they are plausible by themselves: it may be another model, or a cache that a sleep spoilt."""
    model = Model()
    await model.trust.check()
    model.answers = {"red": 0.7, "blue": 0.1}
    model.trust.doubted = True
    told = await refused(model.trust.check)
    model.answers = SOUND
    await model.trust.renew()

    assert told.endswith(OTHER_ANSWERS)
    assert "" == model.trust.fault


async def test_a_server_that_does_not_answer_is_asked_again_by_the_next_call():
    """The check has passed nothing."""
    model = Model(red=[Unreachable("cannot be reached"), 0.9, 0.9])
    with pytest.raises(ServerFailed):
        await model.trust.check()
    await model.trust.check()

    assert ["red", "red", "blue", "red"] == model.asked


async def test_a_server_that_tells_too_little_for_the_check_is_asked_all_the_same():
    """A label beyond its twenty likeliest tokens is the error of each call that needs it."""
    model = Model(red=UpstreamError("returned no log-probability for 'No'"))
    await model.trust.check()

    assert "" == model.trust.fault
