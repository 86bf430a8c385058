"""What a gateway shows of the batches of replicas on Ray; the replicas are fakes."""

import pytest

from service.observability.instruments import Instruments
from service.serving.ray.groups import Recorder, Work
from tests.support.handles import asking, call
from tests.support.spans import Recorded
from tests.unit.serving.ray.replicas import WAITED_S, answered, asked, known, sent

pytestmark = pytest.mark.anyio
RAN = Work([(3, 0.5), (1, 0.25)], [(4, 1.0)], 1, {"allocated": 7})
COPY = {"model": "vqa", "device": "ray:a"}


def value(instruments, name, **labels):
    return instruments.registry.get_sample_value(f"scoregate_{name}", labels)


async def test_the_batches_of_a_replica_are_counted_as_those_of_a_device():
    """Under its id, with its memory; its groups are not batches."""
    instruments = Instruments(["vqa"])
    async with asked(instruments=instruments, a="m") as (deployment, handle, _):
        assert 1.0 == value(instruments, "device_up", **COPY)
        task, _ = asking(handle, call())
        await sent(deployment, 1)
        deployment.groups[0].answered(RAN)
        await task

    names = ("batches_total", "calls_total", "busy_seconds_total")
    assert [1.0, 4.0, 1.0] == [value(instruments, f"device_{name}", **COPY) for name in names]
    assert 1.0 == value(instruments, "out_of_memory_total", **COPY)
    assert 7.0 == value(instruments, "gpu_memory_bytes", device="ray:a", kind="allocated")
    assert (2.0, 4.0) == tuple(value(instruments, f"batch_size_{of}", model="vqa") for of in ("count", "sum"))
    assert 0.75 == value(instruments, "batch_duration_seconds_sum", model="vqa")


async def test_a_replica_that_has_gone_has_no_series():
    """Also when its last group is answered afterwards, whose batches count for the model."""
    instruments = Instruments(["vqa"])
    async with asked(instruments=instruments, a="m", b="m") as (deployment, handle, backend):
        task, _ = asking(handle, call())
        await sent(deployment, 1)
        [group] = deployment.groups
        deployment.runs(**{each: "m" for each in "ab" if each != group.replica})
        await known(backend, 1)
        group.answered(RAN)
        await task
        shown = {
            sample.labels["device"]
            for family in instruments.registry.collect()
            for sample in family.samples
            if "device" in sample.labels
        }
        assert shown == {f"ray:{each}" for each in "ab" if each != group.replica}
        assert 4.0 == value(instruments, "batch_size_sum", model="vqa")


async def test_a_replica_that_comes_back_has_its_series_again():
    """From 0."""
    instruments = Instruments(["vqa"])
    async with asked(instruments=instruments, a="m") as (deployment, handle, backend):
        for replicas in ({}, {"a": "m"}):
            deployment.runs(**replicas)
            await known(backend, len(replicas))
        task, _ = asking(handle, call())
        await sent(deployment, 1)
        deployment.groups[0].answered(RAN)
        await task
    assert 4.0 == value(instruments, "device_calls_total", **COPY)


async def test_a_copys_stages_and_the_way_to_it_are_in_the_timings():
    """Decoding and preparing by name; what else passed until the answer is waiting."""
    now = [0.0]
    async with asked(clock=lambda: now[0], a="m") as (deployment, handle, _):
        task, request = asking(handle, call())
        await sent(deployment, 1)
        now[0] += 2.0
        deployment.groups[0].answered(decoded_s=0.125, prepared_s=0.5)
        await task

    assert 0.125 == request.request.slowest["decode"]
    assert request.request.slowest["prepare"] >= 0.5
    assert 2.0 - 0.25 - 0.125 - 0.5 == request.request.slowest["queue"] > WAITED_S


async def test_a_batch_on_a_replica_has_a_span_in_the_trace_of_its_request():
    """With the replica's name and the duration that it measured; the call's own spans are linked to it."""
    async with asked(a="m") as (deployment, handle, _):
        task, request = asking(handle, call())
        request.span = span = Recorded("one")
        await answered(deployment, task)

    [(_, began, ended, links, attributes)] = [each for each in span.added if each[0] == "batch"]
    assert 0.25 == pytest.approx(ended - began)
    assert ["one"] == links
    assert {"model": "vqa", "device": "ray:a", "calls": 1} == attributes
    [ran] = [each for each in span.added if each[0] == "model"]
    assert ["one/batch"] == ran[3]


def test_a_replica_sends_each_batch_once():
    """To the gateway that it answers next, with the memory of its GPUs then."""
    sizes = [("cuda:0", "allocated", 3), ("cuda:1", "allocated", 4)]
    recorder = Recorder("vqa", lambda: sizes)
    recorder.count_batch("vqa", 3, 0.5)
    recorder.count_batch("vqa", 1, 0.25)
    recorder.count_device("vqa", "", 4, 1.0)
    recorder.count_out_of_memory("vqa", "")

    assert RAN == recorder.take()
    assert Work(memory={"allocated": 7}) == recorder.take()
