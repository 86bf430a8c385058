"""A service that is given as many pictures at once as a request may hold."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from models.images.image import Image
from service.images.loader import ImageRef
from service.metrics.common.registry import metrics
from service.scoring.plan import UnopenedItem
from service.serving.context import Context
from tests.support.pictures import png
from tests.support.services import running

BATCH = 8


@pytest.fixture
def opened(fakes, tmp_path):
    """A service whose VQA model takes eight calls at once, with metrics of a test's own."""

    @asynccontextmanager
    async def opened(*own):
        known = {**metrics(), **{metric.name: metric for metric in own}}
        batch = {"max_items": BATCH, "max_batch_ms": 60_000}
        tree = {
            "models": {"vqa": {"family": "fake", "batch": batch}},
            "cache": {"questions": f"sqlite:///{tmp_path}/q", "scores": "off"},
        }
        async with running(tree, {"vqa": fakes["vqa"]}, metrics=lambda: known) as service:
            yield service

    return opened


def pictures(count):
    """So many different ones."""
    return [png((n % 256, n // 256, 0), size=(2, 2)) for n in range(count)]


def items_of(count, frames, kind=Image):
    files = iter(pictures(count * frames))
    return [UnopenedItem(str(n), [ImageRef(next(files), kind) for _ in range(frames)]) for n in range(count)]


def context(service, lane="bulk"):
    deadline = asyncio.get_running_loop().time() + 600
    return Context("request", deadline, lane, service.instruments)
