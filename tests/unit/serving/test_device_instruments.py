"""What a device shows to Prometheus of its faults."""

import pytest

from service.observability.instruments import Instruments
from tests.support.devices import Words, device, holding, outcomes_of, put

pytestmark = pytest.mark.anyio


async def test_a_device_that_stands_still_shows_since_when():
    """In seconds, for each model on it; an idle one shows 0."""
    now = 0.0
    instruments, models = Instruments(["m0", "m1"]), (Words(), Words())
    served, hosted, _ = device(*models, instruments=instruments, clock=lambda: now)

    def shown():
        samples = instruments.stalled.collect()[0].samples
        return {sample.labels["model"]: sample.value for sample in samples}

    async with served:
        now = 3600.0
        assert {"m0": 0.0, "m1": 0.0} == shown()
        busy = await holding(models[0], served, hosted)
        now = 3700.0
        assert {"m0": 100.0, "m1": 100.0} == shown()
        models[0].hold.set()
        await busy.result
        assert {"m0": 0.0, "m1": 0.0} == shown()


async def test_each_batch_that_runs_out_of_memory_is_counted():
    """Four calls fail, then two of them twice, and one by one they fit: three batches did not."""
    instruments, model = Instruments(["m0"]), Words()
    served, hosted = device(model, instruments=instruments)
    async with served:
        busy = await holding(model, served, hosted)
        calls = put(served, hosted, *range(4))
        model.fault = lambda call: MemoryError("no") if len(model.batches[-1]) > 1 else None
        model.hold.set()
        assert [0, 1, 2, 3] == (await outcomes_of([busy, *calls]))[1:]

    assert 3 == instruments.out_of_memory.labels("m0", "")._value.get()


async def test_calls_are_counted_by_lane_with_what_came_of_them_and_how_long_they_waited():
    """A batch that fails is counted in the parts that were answered."""
    now = 0.0
    instruments, model = Instruments(["m0"]), Words()
    served, hosted = device(model, instruments=instruments, clock=lambda: now)
    async with served:
        gone = await holding(model, served, hosted)
        model.fault = lambda call: ValueError() if call == "bad" else None
        asked = [*put(served, hosted, "fine", "bad", lane="interactive"), *put(served, hosted, "bulk")]
        gone.result.cancel()
        now = 4.0
        model.hold.set()
        await outcomes_of(asked)

    def shown(name, **labels):
        return instruments.registry.get_sample_value(f"scoregate_{name}", {"model": "m0", **labels})

    assert 1 == shown("calls_total", lane="bulk", result="cancelled")
    assert 1 == shown("calls_total", lane="bulk", result="ok")
    assert 1 == shown("calls_total", lane="interactive", result="ok")
    assert 1 == shown("calls_total", lane="interactive", result="error")
    assert (4.0, 8.0) == tuple(shown("queue_wait_seconds_sum", lane=lane) for lane in ("bulk", "interactive"))
    assert (4, 4.0) == (shown("batch_size_sum"), shown("batch_duration_seconds_sum"))


async def test_a_model_is_shown_as_ready_while_its_device_serves():
    """1 from its test calls on, and 0 before and after."""
    instruments = Instruments(["m0"])
    served, _ = device(Words(), instruments=instruments)

    def ready():
        return instruments.registry.get_sample_value("scoregate_model_ready", {"model": "m0"})

    before = ready()
    async with served:
        meanwhile = ready()

    assert (0.0, 1.0, 0.0) == (before, meanwhile, ready())
