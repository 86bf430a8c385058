"""
`--sweep`: every combination of the profile's switches for CLIP-FlanT5, and the best one as a profile.

The best has the highest rate of pairs; among those that are nearly as fast, the one whose single pair takes
least.  `max_items` is the smallest batch that is nearly as fast as the best.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from loadtest.forward import AFTER, ANSWER, BEFORE, make_batch
from loadtest.gpu.bench import NEEDS_CUDA, Bench, drop
from loadtest.gpu.forward import Run, Way, build, ours
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from models.families.clip_flant5.network import ClipFlanT5Network

NEARLY = 0.98  # share of the best rate
GRAPH_ROWS = (0, 4, 16)
PROFILE = """\
# {size} on {card}: {rate:.1f} pairs/s; a single pair takes {single:.1f} ms.
[models.vqa]
family = "clip_flant5"
checkpoint = "zhiqiulin/clip-flant5-{name}"
device = "{device}"
dtype = "{dtype}"
compile = {compile}
graph_rows = {graph_rows}
batch = {{ max_items = {items}, max_cost_tokens = {tokens} }}
"""


@dataclass(frozen=True, slots=True)
class Switches:
    """A setting of each switch that changes no score by more than the stated bounds."""

    compile: bool
    graph_rows: int

    @property
    def needs_cuda(self) -> bool:
        """True if one is on."""
        return self.compile or self.graph_rows > 0

    @property
    def name(self) -> str:
        """The name in the table."""
        return f"compile {'on' if self.compile else 'off'}, graph_rows {self.graph_rows}"


EVERY = [Switches(compiled, rows) for compiled in (False, True) for rows in GRAPH_ROWS]


def steps(bench: Bench) -> Iterator[Step]:
    """Yield each combination of each size with each batch."""
    for size in bench.geometry.flant5:
        for switches in EVERY:
            if switches.needs_cuda and not bench.cuda:
                row = left_out(f"{size}, {switches.name}", NEEDS_CUDA)
                yield Step(row.what, partial(list, [row]))
                continue
            way = Way(partial(ours, compile=switches.compile, graph_rows=switches.graph_rows))
            made = cache(partial(build, bench, size, way))
            for items in bench.geometry.batches:
                what = named(size, switches, items)
                yield Step(what, partial(measure, bench, what, made, items))
            drop(made)


def named(size: str, switches: Switches, items: int) -> str:
    """Return the name of a row."""
    return f"{size}, {switches.name}, batch of {items}"


def measure(
    bench: Bench, what: str, made: Callable[[], tuple[ClipFlanT5Network, Run]], items: int
) -> Iterator[Row]:
    """Measure one batch of pictures with a question each."""
    network, run = made()
    batch = make_batch(network, items, 1, bench.device)
    run(batch)
    yield Row(what, items / bench.pace_s(lambda: run(batch)), "pairs/s")


def profile(bench: Bench, size: str, card: str) -> str:
    """Return the best profile for a size as TOML; empty if nothing was measured."""
    rates = {
        (switches, items): rate
        for switches in EVERY
        for items in bench.geometry.batches
        if (rate := bench.results.value("sweep", named(size, switches, items)))
    }
    if not rates:
        return ""
    enough = NEARLY * max(rates.values())
    fast = {switches for (switches, _), rate in rates.items() if rate >= enough}
    chosen = max(fast, key=lambda switches: rates.get((switches, 1), 0.0))
    items, rate = min(
        (items, rate) for (switches, items), rate in rates.items() if switches == chosen and rate >= enough
    )
    return PROFILE.format(
        size=size,
        name=size.lower(),
        card=card,
        rate=rate,
        single=1000 / rates.get((chosen, 1), rate),
        device="cuda:0" if bench.cuda else "cpu",
        dtype=bench.dtype,
        compile=str(chosen.compile).lower(),
        graph_rows=chosen.graph_rows,
        items=items,
        tokens=items * tokens(bench, size),
    )


def tokens(bench: Bench, size: str) -> int:
    """Return the cost of a question of ordinary length, its picture and its answer included."""
    tower = bench.geometry.flant5[size][1]
    patches: int = (tower["image_size"] // tower["patch_size"]) ** 2
    return BEFORE + patches + max(AFTER) + len(ANSWER)
