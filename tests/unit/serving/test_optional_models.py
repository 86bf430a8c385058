"""Optional models of a pool: they come and go while others serve, and their failures are theirs alone."""

import asyncio

import pytest

from service.core.errors import Draining, ModelFault
from service.core.settings import NotYet
from service.observability.instruments import Instruments
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import HostedModel
from tests.support.devices import Words, holding, outcomes_of, put, until_idle

pytestmark = pytest.mark.anyio

NAMES = ("cpu:0", "cpu:1")


def hosted(name, *devices, optional):
    """A model with a copy on each device."""
    queue = Queue(max_items=4, max_cost=1000, max_waiting=10_000)
    copies = {device: Words() for device in devices}
    return HostedModel(name, copies[devices[0]], queue, copies=copies, optional=optional)


class Pools:
    """A pool that serves `m0`, and an optional model that is not in it yet."""

    def __init__(self, served=NAMES, other=NAMES):
        self.model = hosted("m0", *served, optional=False)
        self.other = hosted("m0@2", *other, optional=True)
        self.instruments, self.broken = Instruments(["m0"]), []
        self.pool = Pool(
            [self.model],
            self.instruments,
            devices=[Device(name) for name in NAMES],
            on_broken=self.broken.append,
        )

    def series(self):
        """The label values of every series of the optional model."""
        families = self.instruments.registry.collect()
        return {
            (sample.name, sample.labels.get("device", ""))
            for family in families
            for sample in family.samples
            if sample.labels.get("model") == "m0@2"
        }


def fails(resident):
    """From now on every call of it raises, its example too."""
    for copy in resident.copies.values():
        copy.fault = lambda call: RuntimeError("CUDA error: device-side assert triggered")


@pytest.fixture
def pools():
    return Pools()


async def test_an_optional_model_is_warmed_up_and_serves_with_the_others(pools):
    """Its series are there while it is."""
    assert not pools.series()
    async with pools.pool as pool:
        await pool.add(pools.other)

        assert [1, 1] == [bool(copy.batches) for copy in pools.other.copies.values()]
        assert ["a"] == await outcomes_of(put(pool, pools.other, "a"))
        assert ["b"] == await outcomes_of(put(pool, pools.model, "b"))
        assert ("scoregate_device_up", "cpu:1") in pools.series()
        ready = pools.instruments.registry.get_sample_value("scoregate_model_ready", {"model": "m0@2"})
        await pool.remove(pools.other)

    assert 1.0 == ready
    assert not pools.series()
    assert (pools.model,) == pool.residents


async def test_a_model_that_leaves_finishes_its_batch_and_answers_what_waits(pools):
    """Nothing of it begins afterwards, and the others go on."""
    async with pools.pool as pool:
        await pool.add(pools.other)
        for copy in pools.other.copies.values():
            copy.hold.clear()
        calls = put(pool, pools.other, *range(12))
        await until_idle()
        leaving = asyncio.create_task(pool.remove(pools.other))
        await until_idle()
        assert not leaving.done()
        for copy in pools.other.copies.values():
            copy.hold.set()
        await leaving

        outcomes = await outcomes_of(calls)
        assert [*range(8)] == outcomes[:8]
        assert {"m0@2 was removed"} == {outcome.detail for outcome in outcomes[8:]}
        with pytest.raises(ModelFault, match="was removed"):
            put(pool, pools.other, "late")
        assert ["fine"] == await outcomes_of(put(pool, pools.model, "fine"))
        assert not pools.series()


@pytest.mark.parametrize(("fault", "error"), [(ValueError("no"), ValueError), (MemoryError("full"), NotYet)])
async def test_a_model_that_fails_on_its_example_does_not_come(pools, fault, error):
    """The pool is as before."""
    pools.other.copies["cpu:1"].fault = lambda call: fault
    async with pools.pool as pool:
        with pytest.raises(error):
            await pool.add(pools.other)

        assert (pools.model,) == pool.residents
    assert not pools.series()


async def test_an_optional_model_that_breaks_takes_no_device_with_it(pools, caplog):
    """Its calls fail, those that wait and those that come; the others serve on all devices."""
    async with pools.pool as pool:
        await pool.add(pools.other)
        fails(pools.other)
        outcomes = await outcomes_of(put(pool, pools.other, *range(20)))

        assert {"the model m0@2 fails on every call since this error"} == {
            outcome.detail.split(":")[0] for outcome in outcomes
        }
        with pytest.raises(ModelFault, match="fails on every call"):
            put(pool, pools.other, "late")
        assert [*range(20)] == await outcomes_of(put(pool, pools.model, *range(20)))
        assert ["", ""] == [device.fault for device in pool.devices]
        assert not pools.broken
        assert ("scoregate_model_ready", "") not in pools.series()
        await pool.remove(pools.other)
    assert not pools.series()
    said, *_ = [record for record in caplog.records if record.getMessage() == "optional model broken"]
    assert "m0@2" == said.model
    assert "device-side assert" in str(said.exc_info[1])


async def test_a_lost_device_ends_an_optional_model_without_another_one():
    """The model that has another one serves on."""
    pools = Pools(other=["cpu:0"])
    async with pools.pool as pool:
        await pool.add(pools.other)
        await holding(pools.model.copies["cpu:0"], pool, pools.model)
        waiting = put(pool, pools.other, "waits")
        pools.model.copies["cpu:0"].fault = lambda call: RuntimeError("lost")
        pools.model.copies["cpu:0"].hold.set()
        [outcome] = await outcomes_of(waiting)

        assert outcome.detail == pool.devices[0].fault == pools.other.fault
        assert pool.running
        assert not pools.broken
        assert ["cpu:1"] == list(pools.model.copies)
        assert ["fine"] == await outcomes_of(put(pool, pools.model, "fine"))


async def test_a_lost_device_leaves_an_optional_model_its_other_ones(pools):
    """As any model."""
    async with pools.pool as pool:
        await pool.add(pools.other)
        pools.model.copies["cpu:0"].fault = lambda call: RuntimeError("lost")
        await outcomes_of(put(pool, pools.model, *range(8)))

        assert ["cpu:1"] == list(pools.other.copies)
        assert ["fine"] == await outcomes_of(put(pool, pools.other, "fine"))


async def test_a_lost_device_is_nothing_to_a_model_on_others():
    """Its copies stay."""
    pools = Pools(other=["cpu:1"])
    async with pools.pool as pool:
        await pool.add(pools.other)
        pools.model.copies["cpu:0"].fault = lambda call: RuntimeError("lost")
        assert [*range(20)] == await outcomes_of(put(pool, pools.model, *range(20)))

        assert ["cpu:1"] == list(pools.other.copies)
        assert not pools.broken


async def test_a_device_that_was_lost_since_the_load_has_no_copy(pools):
    """It was taken out while the model was loaded or warmed up."""
    async with pools.pool as pool:
        pool.devices[0].fault = "lost"
        await pool.add(pools.other)

        assert ["cpu:1"] == list(pools.other.copies)


async def test_a_model_without_a_device_left_ends_the_pool_and_its_optional_ones():
    """All that waits is answered."""
    pools = Pools(served=["cpu:0"], other=["cpu:0"])
    async with pools.pool as pool:
        await pool.add(pools.other)
        await holding(pools.model.copies["cpu:0"], pool, pools.model)
        waiting = put(pool, pools.other, "waits")
        fails(pools.model)
        pools.model.copies["cpu:0"].hold.set()
        [outcome] = await outcomes_of(waiting)

        assert isinstance(outcome, ModelFault)
        assert not pool.running
        await pool.remove(pools.other)
    assert 1 == len(pools.broken)


async def test_a_pool_that_closes_answers_the_calls_of_optional_models(pools):
    """As those of the others."""
    async with pools.pool as pool:
        await pool.add(pools.other)
        busy = await holding(pools.other.copies["cpu:0"], pool, pools.other)
        pools.other.paused = True
        waiting = put(pool, pools.other, "waits")
        pools.other.copies["cpu:0"].hold.set()

    assert ["busy"] == await outcomes_of([busy])
    assert isinstance((await outcomes_of(waiting))[0], Draining)
