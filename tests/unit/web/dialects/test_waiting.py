"""A trainer that is refused may die of it: requests wait for room until their deadline."""

import asyncio
import math

import pytest

from service.core.errors import (
    DeadlineExceeded,
    LaneFull,
    Malformed,
    ModelChanged,
    ModelFault,
    NotReady,
    Overloaded,
    QuotaExceeded,
    RequestTimeout,
    ScoregateError,
    TooLarge,
    UpstreamFailed,
)
from service.metrics.common.contract import Score
from service.scoring.plan import UnopenedItem
from service.scoring.report import ItemReport, Report
from service.serving.admission import WaitingRoom
from service.serving.context import Account, Context
from service.web.dialects.scoring import Window, answer_to, is_temporary
from service.web.openapi import tree
from tests.support.leaps import leap, without_pauses

pytestmark = pytest.mark.anyio


def test_no_error_of_the_service_reaches_a_trainer_in_a_form_that_ends_it():
    """Never a bare 429, 502, 503, 504 or 408; and never Retry-After where waiting does not help."""
    for kind in tree():
        status, headers = answer_to(kind() if kind is not DeadlineExceeded else DeadlineExceeded())
        assert status not in (408, 429, 502, 504), kind
        assert ("Retry-After" in headers) == (status == 503), kind


def test_an_exact_wait_is_as_exact_for_a_trainer_as_for_others():
    """Of a quota: nothing at random on top, and no more than a trainer may wait."""
    quota = [QuotaExceeded("used up", retry_after_s=wait_s) for wait_s in (7.0, 1e9) for _ in range(20)]

    assert {"7", "30"} == {answer_to(error)[1]["Retry-After"] for error in quota}


@pytest.mark.parametrize(
    "error",
    [
        Overloaded(),
        NotReady(),
        LaneFull(),
        QuotaExceeded(),
        UpstreamFailed(),
        DeadlineExceeded(),
        RequestTimeout(),
    ],
)
def test_what_passes_by_itself_is_temporary(error):
    assert is_temporary(error)


@pytest.mark.parametrize("error", [ScoregateError(), ModelFault(), TooLarge(), Malformed()])
def test_what_stays_wrong_is_not(error):
    assert not is_temporary(error)


async def test_what_is_refused_though_there_is_room_is_not_asked_without_a_pause():
    """Or a quota that is used up would take a whole core."""
    asked = []

    class Full:
        async def score(self, items, metrics, context):
            asked.append(items)
            raise Overloaded("another model is full")

    context = Context("", math.inf, "bulk", None)
    with WaitingRoom(0).place(0, 1) as place:
        waits = asyncio.create_task(Window(Full(), ["a"], [("vqascore",)], context).outcomes(place))
        for attempt in range(1, 6):
            for _ in range(100):
                await asyncio.sleep(0)
            assert attempt == len(asked)
            leap()
        waits.cancel()


@pytest.mark.parametrize("fault", [ModelChanged("again"), NotReady()])
async def test_items_whose_models_changed_again_after_the_charge_are_charged_once(fault):
    """The attempt fails as a whole and is repeated for free, and so is a metric that fails alone."""
    charged = []
    score = Score(0.5, {})
    attempts = [fault, {"vqascore": score, "ocr": Overloaded()}, fault, {"ocr": score}]

    class Changing:
        async def score(self, items, metrics, context):
            context.account.charge(len(items) * len(metrics))
            if isinstance(outcome := attempts.pop(0), ScoregateError):
                raise outcome
            return Report([ItemReport(item, outcome) for item in items])

    context = Context("", math.inf, "bulk", None, account=Account(charge=charged.append))
    with WaitingRoom(0).place(0, 1) as place:
        window = Window(Changing(), [UnopenedItem("a", [])] * 2, [("vqascore", "ocr")] * 2, context)
        outcomes = await without_pauses(window.outcomes(place))

    assert ([4], []) == (charged, attempts)
    assert [{"vqascore": score, "ocr": score}] * 2 == outcomes


async def test_items_that_were_refused_before_the_charge_are_charged_later():
    """They were not scored: the attempt that scores them pays."""
    charged, attempts = [], [LaneFull(), None]

    class Full:
        async def score(self, items, metrics, context):
            if refused := attempts.pop(0):
                raise refused
            context.account.charge(len(items))
            return Report([ItemReport(item, {"vqascore": Score(0.5, {})}) for item in items])

    context = Context("", math.inf, "bulk", None, account=Account(charge=charged.append))
    with WaitingRoom(0).place(0, 1) as place:
        window = Window(Full(), [UnopenedItem("a", [])], [("vqascore",)], context)
        await without_pauses(window.outcomes(place))

    assert [1] == charged
