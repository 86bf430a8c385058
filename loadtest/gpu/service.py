"""
The service over HTTP: one process with CLIP-FlanT5 and two CLIPs on the device, under the usual loads.

The checkpoints have random weights in the published layouts, so the real loaders read them.  Requests come
from `loadtest.generator`, a process on the same machine.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from demo.process import SERVICE, Failed, free_port, running, wait_until_ready
from loadtest import corpus
from loadtest.gpu.bench import Bench
from loadtest.gpu.checkpoints import clip, flant5
from loadtest.gpu.geometry import CLIP_H, CLIP_L
from loadtest.gpu.results import Row
from loadtest.gpu.steps import Step
from loadtest.results import Outcome, count, latencies, percentile, throughput
from loadtest.servers import Server, cpu_s
from loadtest.workloads import Spec
from models.core.calls import ImageCall, LikelihoodCall
from models.core.contract import QUESTION
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image

AT_ONCE = {"vqa": 64, "clip": 256}  # calls of a batch
SERVED = 0.95  # the served rate over the offline rate
CLIP_RATE, CORES = 2000, 16  # pictures a second of CLIP L/14-336, with as many cores
OFFLINE, CLIP_OFFLINE = "XL offline, in batches of prepared calls", "CLIP L/14-336 offline, likewise"
BURST = "XL, single requests at once"
TABLE = """
[models.{name}]
role = "{role}"
family = "{family}"
checkpoint = "{checkpoint}"
device = "{device}"
dtype = "{dtype}"
batch = {{ max_items = {at_once}, max_cost_tokens = 262144 }}
"""
REST = """
[metrics]
pickscore = {{ model = "pickscore" }}

[images]
decode_workers = {cores}

[cache]
scores = "off"
questions = "sqlite:///{folder}/questions.sqlite3"
"""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The directories of the models that are served."""

    vqa: Path
    clip: Path
    pickscore: Path


def steps(bench: Bench) -> Iterator[Step]:
    """Yield the checkpoints, the loads without HTTP, and those of one process that serves all models."""
    held = cache(lambda: Checkpoints(flant5(bench), clip(bench, CLIP_L), clip(bench, CLIP_H)))
    yield Step("checkpoints", partial(written, held))
    yield Step("XL offline", partial(vqa_offline, bench, held))
    yield Step("CLIP offline", partial(clip_offline, bench, held))
    with ExitStack() as stack:
        server = cache(lambda: stack.enter_context(served(bench, held())))
        loads = {"singles": singles, "questions": questions, "interactive": interactive}
        for name, load in (loads | {"CLIP": clip_rate, "two models": two_models}).items():
            yield Step(name, partial(load, bench, server))


def written(held: Callable[[], Checkpoints]) -> Iterator[Row]:
    """Write what is not there yet."""
    began, found = perf_counter(), held()
    seconds = perf_counter() - began
    files = [
        file for each in (found.vqa, found.clip, found.pickscore) for file in each.rglob("*.safetensors")
    ]
    note = f"{sum(file.stat().st_size for file in files) / 1e9:.3g} GB"
    yield Row("checkpoints written, or found", seconds, "s", note=note)


# --- without HTTP -------------------------------------------------------------------------------


def images_of(bench: Bench, number: int) -> list[Image]:
    """Return distinct pictures of the geometry's kind."""
    return [Image(file) for file in islice(corpus.distinct(bench.geometry.image, Random(0)), number)]


def vqa_offline(bench: Bench, held: Callable[[], Checkpoints]) -> Iterator[Row]:
    """Load the checkpoint with the real loader, and score full batches of prepared calls."""
    began = perf_counter()
    model = ClipFlanT5(held().vqa, dtype=bench.dtype, device=str(bench.device))
    yield Row("XL, the loader", perf_counter() - began, "s", note="from the system's page cache")
    prompts = corpus.prompts(Random(0))
    calls = [
        LikelihoodCall(image, QUESTION.replace("{}", next(prompts)))
        for image in images_of(bench, AT_ONCE["vqa"])
    ]
    yield offline(bench, OFFLINE, model, calls)


def clip_offline(bench: Bench, held: Callable[[], Checkpoints]) -> Iterator[Row]:
    """Score full batches of prepared pictures."""
    model = Clip(str(held().clip), dtype=bench.dtype, device=str(bench.device))
    yield offline(bench, CLIP_OFFLINE, model, [*map(ImageCall, images_of(bench, AT_ONCE["clip"]))])


def offline(bench: Bench, what: str, model: Any, calls: Sequence[Any]) -> Row:
    """Return the rate at which *model* scores *calls* in one batch."""
    batch = [model.prepare(call) for call in calls]
    model.score(batch)
    return Row(what, len(batch) / bench.pace_s(lambda: model.score(batch)), "pictures/s")


# --- over HTTP ----------------------------------------------------------------------------------


@contextmanager
def served(bench: Bench, held: Checkpoints) -> Iterator[Server]:
    """Run the service with the models of *held*; its log is in the folder of the results."""
    where = {"device": str(bench.device), "dtype": bench.dtype}
    tables = [
        TABLE.format(
            name=name, role=role, family=family, checkpoint=checkpoint, at_once=AT_ONCE[role], **where
        )
        for name, role, family, checkpoint in (
            ("vqa", "vqa", "clip_flant5", held.vqa),
            ("clip", "clip", "open_clip", held.clip),
            ("pickscore", "clip", "open_clip", held.pickscore),
        )
    ]
    profile, port = bench.folder / "service.toml", free_port(0)
    profile.write_text("".join([*tables, REST.format(cores=os.cpu_count(), folder=bench.folder)]), "utf-8")
    log = bench.folder / "service.log"
    with running(port, [*SERVICE, "--config", str(profile)], log) as process:
        try:
            wait_until_ready(process, port)
        except Failed as exc:
            raise Failed(f"{exc}; see {log}") from exc
        yield Server(port, process.pid)


Serve = Callable[[], Server]


def spec(bench: Bench, workload: str, requests: int, metric: str = "vqascore", **more: Any) -> Spec:
    """Return a workload of so many single pictures."""
    return Spec(workload, rate=requests, seconds=1, image=bench.geometry.image, metric=metric, **more)


def rate(what: str, outcomes: Sequence[Outcome], **more: Any) -> Row:
    """Return the row of a run, in pictures a second, with its failures and latencies."""
    p50, p99 = (1000 * percentile(latencies(outcomes), share) for share in (0.5, 0.99))
    failures = len(outcomes) - count(outcomes, "ok")
    note = f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, {failures} of {len(outcomes)} failed"
    return Row(what, throughput(outcomes), "pictures/s", note=note, **more)


def singles(bench: Bench, server: Serve) -> Iterator[Row]:
    """Send single requests: all at once, and from 64 callers, whose rate is compared with offline."""
    burst = bench.geometry.burst
    server().run(spec(bench, "sixty-four-at-once", burst))  # warms up
    yield rate(f"{BURST}, {burst}", server().run(Spec("rl-burst", scale=burst / 512)))
    steady = server().run(spec(bench, "sixty-four-at-once", 2 * burst))
    yield rate("XL, 64 callers of single requests", steady)
    if reached := bench.results.value("service", OFFLINE):
        yield Row("XL, served over offline", throughput(steady) / reached, "×", least=SERVED)


def questions(bench: Bench, server: Serve) -> Iterator[Row]:
    """Send pictures with eight questions each."""
    outcomes = server().run(
        spec(bench, "sixteen-at-once", max(8, bench.geometry.burst // 4), "dsg", questions=True)
    )
    row = rate("XL, 8 questions about each picture", outcomes)
    yield row
    yield Row("XL, 8 questions about each picture", 8 * (row.value or 0), "pairs/s")


def interactive(bench: Bench, server: Serve) -> Iterator[Row]:
    """Measure the latency of single interactive requests, alone and while bulk saturates the device."""
    for what, workload in (("alone", "one-by-one"), ("while bulk saturates the device", "under-bulk")):
        outcomes = server().run(spec(bench, workload, bench.geometry.alone))
        waited = latencies(outcomes, "interactive")
        note = f"p50 {1000 * percentile(waited, 0.5):.0f} ms, {len(waited)} requests"
        yield Row(f"XL, interactive p99 {what}", 1000 * percentile(waited, 0.99), "ms", note=note)


def clip_rate(bench: Bench, server: Serve) -> Iterator[Row]:
    """Send pictures for CLIP, and count the processor time that each takes."""
    workload = spec(bench, "sixty-four-at-once", 4 * bench.geometry.burst, "clipscore")
    server().run(workload)  # warms up
    before = cpu_s(server().pid)
    outcomes = server().run(workload)
    each_s = (cpu_s(server().pid) - before) / len(outcomes)
    cores = os.cpu_count() or 1
    least = CLIP_RATE if cores >= CORES else None
    yield rate(f"CLIP L/14-336, 64 callers, {cores} cores", outcomes, least=least)
    yield Row("CLIP L/14-336, the service's processor time a picture", 1000 * each_s, "ms")
    if reached := bench.results.value("service", CLIP_OFFLINE):
        yield Row("CLIP L/14-336, cores that feed one card", each_s * reached, "cores")


def two_models(bench: Bench, server: Serve) -> Iterator[Row]:
    """Send pictures to CLIP and to PickScore, alone and together; count rewards per hour of the card."""
    workloads = [
        spec(bench, "sixty-four-at-once", 2 * bench.geometry.burst, metric)
        for metric in ("clipscore", "pickscore")
    ]
    server().run(workloads[1])  # warms up; a CLIP has run before
    alone = [server().run(workload) for workload in workloads]
    with ThreadPoolExecutor(2) as threads:
        together = [*threads.map(server().run, workloads)]
    rewards = sum(map(len, alone))
    turns_s = sum(len(outcomes) / throughput(outcomes) for outcomes in alone)
    both_s = max(len(outcomes) / throughput(outcomes) for outcomes in together)
    yield Row("CLIP and PickScore in turns", 3600 * rewards / turns_s, "rewards/h")
    note = f"{100 * (turns_s / both_s - 1):+.0f} % over turns"
    yield Row("CLIP and PickScore together", 3600 * rewards / both_s, "rewards/h", note=note)
