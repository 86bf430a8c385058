"""Devices that serve fakes, and what tests do with them."""

import asyncio
from itertools import zip_longest

from models.core.contract import Prepared
from service.observability.instruments import Instruments
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.job import Job
from tests.support.fakes import FakeVqa
from tests.support.instruments import unread


class FaultyQueue(Queue):
    """Forms no batch while it is `broken`."""

    broken = False

    def take(self, now, **options):
        if self.broken:
            raise ZeroDivisionError
        return super().take(now, **options)


class NotedQueue(Queue):
    """Notes what its cost model learns; first of a warm-up."""

    def __init__(self, **limits):
        super().__init__(**limits)
        self.learnt = []

    def finished(self, cost, seconds, gap_s=0.0):
        super().finished(cost, seconds, gap_s)
        self.learnt.append((cost, seconds, gap_s))


def device(*models, large=(), instruments=None, queue=Queue, **options):
    """A device that serves *models*, and their hosted models; `limits` are those of a *queue* of each."""
    limits = {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000, **options.pop("limits", {})}
    hosted_models = [
        HostedModel(f"m{n}", model, queue(**limits), large=each)
        for n, (model, each) in enumerate(zip_longest(models, large))
    ]
    if cores := options.pop("cores", None):
        options["devices"] = [Device("", cores)]
    names = [hosted.name for hosted in hosted_models]
    return Pool(hosted_models, instruments or unread(*names), **options), *hosted_models


def pool(*names, broken=None, queue=Queue, **options):
    """A pool with a copy of `m0` on each device, its hosted model, and the copies."""
    copies, instruments = {name: Words() for name in names}, Instruments(["m0"])
    waiting = queue(max_items=4, max_cost=1000, max_waiting=10_000)
    hosted = HostedModel("m0", copies[names[0]], waiting, copies=dict(copies))
    on_broken = [].append if broken is None else broken.append
    devices = [Device(name) for name in names]
    served = Pool([hosted], instruments, devices=devices, on_broken=on_broken, **options)
    return served, hosted, copies


class Words(FakeVqa):
    """Answers with the call itself."""

    def answer(self, call):
        return call


def submitted(served, hosted, word, lane, **more):
    """A job of a pool, which was submitted."""
    job = Job(Prepared(1, word), lane, **more)
    served.submit(hosted, job)
    return job


def put(served, hosted, *words, lane="bulk"):
    return [submitted(served, hosted, word, lane) for word in words]


def learns(hosted, *, fixed):
    """Its batches take *fixed* seconds and hardly anything for a call."""
    for cost in (1, 2) * 50:
        hosted.queue.finished(cost, seconds=fixed + 1e-6 * cost)


def begins(turns, now, device=""):
    """What the only slot of a device of one core does."""
    return turns.next(now, device, 0)


async def until_idle():
    """Whatever could run has run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def outcomes_of(calls):
    return [(await call.result).outcome for call in calls]


async def holding(model, served, hosted):
    """The device is busy with one call of *model*."""
    model.hold.clear()
    [busy] = put(served, hosted, "busy")
    while not (model.held or busy.result.done()):
        await asyncio.sleep(0.001)
    return busy


def value_of(served, name, device):
    """A sample of `m0` on a device."""
    return served._instruments.registry.get_sample_value(name, {"model": "m0", "device": device})
