"""Calls that one request to a server answers together."""

import asyncio

import pytest

from models.core.contract import ModelError, ModelInfo, Prepared, RemoteModel, UpstreamError
from service.serving.backends.upstream import Joined

pytestmark = pytest.mark.anyio


class Doubling(RemoteModel):
    """Answers a number by its double; even numbers share a request."""

    info = ModelInfo("vqa", "fake", "fake", "", "", "remote")

    def prepare(self, call):
        return Prepared(1, call)

    def together(self, prepared):
        return "" if prepared.data % 2 else "even"

    async def answer(self, prepared, post):
        [found] = await self.answer_all([prepared], post)
        return found

    async def answer_all(self, prepared, post):
        await post("path", {"numbers": [each.data for each in prepared]})
        return [ModelError("was refused") if each.data == 50 else 2 * each.data for each in prepared]


async def turn(seconds):
    """What stands for the time in which calls are collected: one turn of the event loop."""
    await asyncio.sleep(0)


def joining(most):
    model = Doubling()
    model.most_together = most
    return Joined(model, turn)


@pytest.fixture
def sent():
    return []


@pytest.fixture
def post(sent):
    async def post(path, body):
        sent.append(body["numbers"])
        await asyncio.sleep(0)
        if 26 in body["numbers"]:
            raise UpstreamError("is unlucky")
        if {38, 40} & {*body["numbers"]}:
            raise UpstreamError("is too large", 400)
        return {}

    return post


async def test_calls_that_start_together_are_one_request(sent, post):
    """Each gets its own result; others have requests of their own."""
    joined = joining(10)
    found = await asyncio.gather(*(joined.answer(Prepared(1, n), post) for n in (2, 3, 4, 6)))

    assert [4, 6, 8, 12] == found
    assert [[2, 4, 6], [3]] == sorted(sent)


async def test_a_request_has_no_more_calls_than_the_server_takes(sent, post):
    """The others are the next one."""
    joined = joining(2)
    found = await asyncio.gather(*(joined.answer(Prepared(1, n), post) for n in (2, 4, 6)))

    assert ([4, 8, 12], [[2, 4], [6]]) == (found, sent)


async def test_a_later_call_is_another_request(sent, post):
    """One that is sent takes no more calls."""
    joined = joining(10)
    assert [4, 8] == [await joined.answer(Prepared(1, n), post) for n in (2, 4)]
    assert [[2], [4]] == sent


async def test_the_others_are_answered_when_a_caller_leaves(sent, post):
    """Also if it was the first."""
    joined = joining(10)
    first, second = (asyncio.create_task(joined.answer(Prepared(1, n), post)) for n in (2, 4))
    await asyncio.sleep(0)
    first.cancel()

    assert 8 == await second
    assert [[2, 4]] == sent


async def test_an_error_is_that_of_every_call(post):
    """And of none that came later."""
    joined = joining(10)
    found = await asyncio.gather(
        *(joined.answer(Prepared(1, n), post) for n in (2, 26)), return_exceptions=True
    )

    assert ["is unlucky"] * 2 == list(map(str, found))
    assert 4 == await joined.answer(Prepared(1, 2), post)


async def test_a_call_that_the_server_rejects_is_sent_alone_in_the_end(sent, post):
    """Those beside it are answered: each half is sent again."""
    joined = joining(10)
    found = await asyncio.gather(
        *(joined.answer(Prepared(1, n), post) for n in (2, 4, 38, 6, 8)), return_exceptions=True
    )

    assert ["4", "8", "is too large", "12", "16"] == list(map(str, found))
    assert [[2, 4], [2, 4, 38, 6, 8], [6, 8], [38], [38, 6, 8]] == sorted(sent)


async def test_several_calls_that_the_server_rejects_have_their_errors(post):
    """And only they."""
    joined = joining(10)
    found = await asyncio.gather(
        *(joined.answer(Prepared(1, n), post) for n in (38, 2, 40)), return_exceptions=True
    )

    assert ["is too large", "4", "is too large"] == list(map(str, found))


async def test_an_error_in_a_calls_place_is_that_calls_alone(sent, post):
    """With one request."""
    joined = joining(10)
    found = await asyncio.gather(
        *(joined.answer(Prepared(1, n), post) for n in (2, 50)), return_exceptions=True
    )

    assert ["4", "was refused"] == list(map(str, found))
    assert [[2, 50]] == sent


async def test_a_request_is_as_urgent_as_the_most_urgent_of_its_calls():
    """An interactive call that joins bulk calls sends the request, with its own priority."""
    sent = []

    def post_of(caller):
        async def post(path, body):
            sent.append((caller, body["numbers"]))
            return {}

        return post

    joined = joining(10)
    calls = ((2, "bulk", False), (4, "first", True), (6, "second", True), (8, "bulk", False))
    found = await asyncio.gather(
        *(joined.answer(Prepared(1, n), post_of(caller), urgent=urgent) for n, caller, urgent in calls)
    )

    assert [4, 8, 12, 16] == found
    assert [("first", [2, 4, 6, 8])] == sent
