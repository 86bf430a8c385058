"""
vLLM: a question LLM and a VLM that it serves, called by the service's own writer and backends.

Their weights are random and made by vLLM, which needs a configuration and a tokenizer only.  Such an LLM
writes no questions, so the schema of its answer allows one text, a set of eight: all tokens are computed and
chosen as usual, and the schema decides.
"""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import torch
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig

from demo.process import HOST, url
from loadtest import corpus
from loadtest.gpu import checkpoints
from loadtest.gpu.bench import Bench
from loadtest.gpu.geometry import QUESTION_LLM, VLM
from loadtest.gpu.limits import ON_DEVICE
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.service import images_of
from loadtest.gpu.steps import Step
from loadtest.peers.peer import Peer, peer_served
from loadtest.results import percentile
from loadtest.servers import Server
from models.core.calls import LikelihoodCall
from models.core.contract import KnownCalls
from models.families.openai import VlmSettings, served_arguments
from models.families.openai.vlm import OpenAiVlm
from service.core.concurrency.tasks import side_by_side
from service.core.lanes import BULK, INTERACTIVE
from service.questions.styles.dsg import DSG
from service.serving.context import Context
from service.serving.loading import load_models
from service.wiring.bootstrap import Service
from service.wiring.load import settings_of

NAME = "m"  # the model's name on its server
DEADLINE_S = 600.0
STYLE = replace(DSG, schema={"const": {"questions": corpus.QUESTION_SET}})
ABSENT = "question LLM and VLM"
BANDWIDTH_NOTE = "share of the bandwidth, as each token reads all weights"
EIGHT = corpus.QUESTIONS
COUNTERS = ("generation_tokens", "prompt_tokens", "prefix_cache_hits")  # vLLM's names; all count tokens

Loads = Callable[["Load"], Coroutine[Any, Any, Sequence[Row]]]
Serve = Callable[[Peer, str, Path, Path], AbstractContextManager[Server]]


def steps(bench: Bench, serve: Serve = peer_served) -> Iterator[Step]:
    """Yield each model, which *serve* runs vLLM with; without vLLM, one row that says so."""
    if not installed(bench.vllm):
        row = left_out(ABSENT, "vLLM is not installed; --vllm PYTHON names a Python that has it")
        yield Step(ABSENT, partial(list, [row]))
        return
    bench.results.forget("vllm", ABSENT)
    yield Step(
        QUESTION_LLM, partial(measure, bench, serve, QUESTION_LLM, checkpoints.question_llm, write_sets)
    )
    yield Step(VLM, partial(measure, bench, serve, VLM, checkpoints.vlm, ask))


def installed(python: Path) -> bool:
    """Return True if *python* finds vLLM, which takes long to import."""
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    return subprocess.run([str(python), "-c", find]).returncode == 0


def server_of(bench: Bench) -> Peer:
    """Return vLLM as it is started for a checkpoint without weights."""

    def command(checkpoint: str, port: int) -> Sequence[str]:
        options = ["--model", checkpoint, "--load-format", "dummy", "--served-model-name", NAME]
        options += ["--host", HOST, "--port", str(port), "--dtype", bench.dtype, "--max-model-len", "4096"]
        options += ["--scheduling-policy", "priority"]
        if not bench.cuda:  # one process, and nothing compiled: starts in a third of the time
            options += ["--enforce-eager", "--distributed-executor-backend", "uni"]
        return ["-m", "vllm.entrypoints.openai.api_server", *options]

    # The bundle's packages are left out: they are for another Python or other versions.
    environment = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    if not bench.cuda:
        environment |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    return Peer("vllm", "vllm", "openai", "/health", command, environment)


@dataclass(frozen=True, slots=True)
class Load:
    """
    A served model, and what its figures are named by.

    Attributes:
        name: of the model in the table.
        config: of transformers.
    """

    bench: Bench
    name: str
    config: PretrainedConfig
    server: Server

    async def run(self, works: Iterable[Coroutine[Any, Any, Any]]) -> "Run":
        """Return what *works* took together, and the tokens that the server computed meanwhile."""
        before, began = self._tokens(), perf_counter()
        await side_by_side(works)
        seconds = perf_counter() - began
        written, prompts, cached = (now - old for now, old in zip(self._tokens(), before, strict=True))
        return Run(seconds, int(written), int(written + prompts - cached))

    def version(self) -> str:
        """Return vLLM's version."""
        with self.server.client() as client:
            return str(client.get("/version").json()["version"])

    def share(self, run: "Run", images: int = 0) -> float:
        """Return the part of the measured peak that the tokens of *run* and new *pictures* take."""
        operations = 2 * weights(self.config.get_text_config()) * run.computed
        if images:
            tower = self.config.vision_config
            patches = (tower.image_size // tower.patch_size) ** 2
            operations += 2 * weights(tower) * (1 + patches) * images
        return operations / run.seconds / self.bench.peak

    def _tokens(self) -> list[float]:
        with self.server.client() as client:
            lines = client.get("/metrics").text.splitlines()
        return [
            sum(float(line.split()[-1]) for line in lines if line.startswith(f"vllm:{name}_total{{"))
            for name in COUNTERS
        ]


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of a run, tokens that were written, and tokens that were computed: those, and new ones read."""

    seconds: float
    written: int
    computed: int


def measure(
    bench: Bench,
    serve: Serve,
    name: str,
    write: Callable[[Bench], tuple[Path, PretrainedConfig]],
    loads: Loads,
) -> Iterator[Row]:
    """Start a model's server, and send the loads."""
    directory, config = write(bench)
    began, log = perf_counter(), bench.folder / f"{directory.name}.log"
    with serve(server_of(bench), str(directory), bench.vllm, log) as server:
        load = Load(bench, name, config, server)
        yield Row(f"{name}, start", perf_counter() - began, "s", note=f"vLLM {load.version()}")
        yield from asyncio.run(loads(load))


def weights(config: PretrainedConfig) -> int:
    """Return the number of weights that a token is multiplied with."""
    words = hasattr(config, "vocab_size")
    with torch.device("meta"):
        network = (AutoModelForCausalLM if words else AutoModel).from_config(config)
    unused = network.get_input_embeddings() if words else torch.nn.Module()
    every, few = (sum(map(torch.numel, each.parameters())) for each in (network, unused))
    return every - few


# --- through the service's parts ------------------------------------------------------------------


class Untrained(OpenAiVlm):
    """A VLM without the check of its answers: random weights give opposite questions one number."""

    def known_calls(self) -> KnownCalls:
        """Return no questions."""
        return KnownCalls()


@asynccontextmanager
async def service_around(load: Load, role: str, family: str) -> AsyncIterator[Service]:
    """Run the parts of a service whose one model is the served one."""
    table = {"role": role, "family": family, "base_url": f"{url(load.server.port)}/v1", "model": NAME}
    with tempfile.TemporaryDirectory() as folder:
        tree = {
            "models": {role: table | {"timeout_s": DEADLINE_S}},
            "images": {"decode_workers": os.cpu_count()},
            "cache": {"scores": "off", "questions": f"sqlite:///{folder}/questions.sqlite3"},
        }
        settings = settings_of(tree, "loadtest.gpu", {})
        models, own = load_models(settings), settings.models[role]
        if isinstance(own, VlmSettings):
            models[role] = Untrained(**served_arguments(own))
        async with Service(settings, models) as service:
            yield service


def context(service: Service, lane: str, name: str) -> Context:
    """Return the context of one request."""
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    return Context(name, deadline, lane, service.instruments)


async def write_sets(load: Load) -> list[Row]:
    """Have the writer write question sets, together and one after the other."""
    geometry, bench = load.bench.geometry, load.bench
    together, alone = geometry.burst // 8, geometry.alone // 8
    drawn = enumerate(corpus.prompts(Random(0)))
    async with service_around(load, "questions", "openai") as service:
        llm = service.runtime.handles["questions"]

        async def write(lane: str) -> None:
            number, prompt = next(drawn)
            request = context(service, lane, f"prompt-{number}")
            await service.questions.of(f"{prompt}, {number}", STYLE, llm, request, admitted=True)

        await write(BULK)  # warms up
        many = await load.run(write(BULK) for _ in range(together))
        single = [await load.run([write(INTERACTIVE)]) for _ in range(alone)]
    what, seconds = f"{load.name}, question sets", median(run.seconds for run in single)
    note = f"{many.written / together:.0f} tokens each, which the schema forces"
    speed = single[0].written / single[0].seconds
    read = weights(load.config) * bench.torch_dtype.itemsize * speed / 1e9  # all weights for each token
    copied = bench.results.value("limits", ON_DEVICE)
    return [
        Row(f"{what}, {together} at once", together / many.seconds, "sets/s", note=note),
        Row(f"{what}, {together} at once: tokens", many.written / many.seconds, "tokens/s", load.share(many)),
        Row(f"{what}, one alone", 1000 * seconds, "ms"),
        Row(f"{what}, one alone: tokens", speed, "tokens/s", copied and read / copied, note=BANDWIDTH_NOTE),
    ]


async def ask(load: Load) -> list[Row]:
    """Have the backend compute P("Yes"): for new pictures together, for their questions, and one by one."""
    geometry = load.bench.geometry
    once, eight = geometry.burst // 2, geometry.burst // 8
    new = iter(images_of(load.bench, 1 + once + eight + geometry.alone))
    async with service_around(load, "vqa", "openai_vlm") as service:
        vlm = service.runtime.handles["vqa"]

        async def likelihoods(lane: str, questions: Sequence[str]) -> None:
            image = next(new)
            calls = [LikelihoodCall(image, question) for question in questions]
            for outcome in await vlm.call(calls, context(service, lane, image.digest)):
                if isinstance(outcome, Exception):
                    raise outcome

        await likelihoods(BULK, EIGHT)  # warms up
        many = await load.run(likelihoods(BULK, EIGHT[:1]) for _ in range(once))
        full = await load.run(likelihoods(BULK, EIGHT) for _ in range(eight))
        single = [await load.run([likelihoods(INTERACTIVE, EIGHT[:1])]) for _ in range(geometry.alone)]
    what, waited = f"{load.name}, P(Yes)", [1000 * run.seconds for run in single]
    note, pairs = f"p50 {median(waited):.0f} ms, {len(waited)} requests", len(EIGHT) * eight / full.seconds
    return [
        Row(f"{what}, {once} pictures at once", once / many.seconds, "pictures/s", load.share(many, once)),
        Row(f"{what}, {eight} × {len(EIGHT)} at once", pairs, "pairs/s", load.share(full, eight)),
        Row(f"{what}, interactive p99 alone", percentile(waited, 0.99), "ms", note=note),
    ]
