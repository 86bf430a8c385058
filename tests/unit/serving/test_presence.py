"""The presence of a model: who waits, and who is rejected."""

import asyncio

import pytest

from service.core.errors import NotReady
from service.serving.backends.contract import Presence

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("state", ["offloaded", "unloaded", "leaving", "loading"])
async def test_calls_of_a_model_that_is_away_are_rejected(state):
    """With the state as the reason."""
    presence = Presence("vqa")
    presence.change(state)

    with pytest.raises(NotReady, match=rf"models.vqa has been taken away \({state}\)"):
        await presence.wait()
    assert state in presence.reason


@pytest.mark.parametrize("state", ["offloaded", "leaving"])
async def test_calls_wait_until_the_model_is_back(state):
    """If the settings say so."""
    presence = Presence("vqa", waits=True)
    presence.change(state)
    waiting = asyncio.create_task(presence.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert "" == presence.reason

    presence.change("loading")
    presence.change("loaded")
    await waiting


async def test_requests_under_way_are_finished_before_a_model_leaves():
    """Their calls begin, those of later requests do not; parts of a request overlap."""
    presence, late = Presence("vqa"), object()
    with presence.used_by("request"):
        presence.change("leaving")
        leaving = asyncio.create_task(presence.unused())
        with presence.used_by("request"), presence.used_by(late):
            await presence.wait("request")
            with pytest.raises(NotReady):
                await presence.wait(late)
        await asyncio.sleep(0)
        assert not leaving.done()
    await leaving
    with pytest.raises(NotReady):
        await presence.wait("request")


async def test_work_that_is_shared_with_a_request_under_way_is_finished_before_a_model_leaves():
    """Also if a later request began it and it waits already; not if later requests alone share it."""
    presence = Presence("questions", waits=True)
    with presence.used_by("early"):
        presence.change("leaving")
        leaving = asyncio.create_task(presence.unused())
        with presence.used_by("late"), presence.used_by("work"):
            waiting = asyncio.create_task(presence.wait("work"))
            await asyncio.sleep(0)
            presence.share("late", "work")
            await asyncio.sleep(0)
            assert not waiting.done()
            presence.share("early", "work")
            await waiting
    with presence.used_by("late"):
        await leaving


async def test_requests_that_waited_are_under_way_when_the_model_is_back():
    """The next time it leaves, they are finished first."""
    presence = Presence("vqa", waits=True)
    presence.change("offloaded")
    with presence.used_by("request"):
        presence.change("loaded")
        presence.change("leaving")
        await presence.wait("request")


async def test_calls_of_a_model_that_waits_for_its_need_are_not_rejected():
    """They wait for it, whatever the settings say; it has no reason not to be ready."""
    presence = Presence("vqa")
    presence.wait_for_need()
    waiting = asyncio.create_task(presence.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert ("", "unloaded") == (presence.reason, presence.state)

    presence.change("loading")
    presence.change("loaded")
    await waiting
