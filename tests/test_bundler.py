"""One trip for all that was asked since the last one began."""

import asyncio

import pytest

from service.serving.bundler import Bundler

pytestmark = pytest.mark.anyio


class Work:
    """Doubles numbers, once it is let go, and refuses bundles with a 13."""

    def __init__(self):
        self.bundles = []
        self.go = asyncio.Event()

    async def __call__(self, bundle):
        self.bundles.append(list(bundle))
        await self.go.wait()
        if 13 in bundle:
            raise ValueError
        return [2 * number for number in bundle]


async def test_what_is_asked_in_one_turn_shares_a_bundle_and_so_does_what_waits():
    """Two bundles for six questions; each has its own answer."""
    work = Work()
    bundler = Bundler(work)
    first = [bundler.ask(number) for number in (1, 2, 3)]
    while not work.bundles:
        await asyncio.sleep(0)
    second = [bundler.ask(number) for number in (4, 5, 6)]
    work.go.set()

    assert [2, 4, 6, 8, 10, 12] == list(await asyncio.gather(*first, *second))
    assert [[1, 2, 3], [4, 5, 6]] == work.bundles


async def test_closing_waits_for_everything_that_was_asked():
    """Also for what nobody awaits."""
    work = Work()
    bundler = Bundler(work)
    answer = bundler.ask(1)
    work.go.set()
    await bundler.aclose()

    assert 2 == answer.result()


async def test_an_error_reaches_its_bundle_and_nobody_else():
    """The next bundle is worked on."""
    work = Work()
    work.go.set()
    bundler = Bundler(work)
    bad = await asyncio.gather(bundler.ask(13), bundler.ask(1), return_exceptions=True)

    assert [ValueError, ValueError] == [type(answer) for answer in bad]
    assert 4 == await bundler.ask(2)


async def test_who_leaves_takes_no_answer_from_the_others():
    """A cancelled question is worked on and its answer dropped."""
    work = Work()
    bundler = Bundler(work)
    gone, stays = bundler.ask(1), bundler.ask(2)
    gone.cancel()
    work.go.set()

    assert 4 == await stays
