"""The parts of `make gpu` at the real geometry, with few layers, on a CUDA device that is not there."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from loadtest.gpu import __main__ as command
from loadtest.gpu import checkpoints, decoders, encoders, forward, vllm
from loadtest.gpu.bench import Bench
from loadtest.gpu.decoders import Decoder
from loadtest.gpu.geometry import DETECTOR, REAL
from loadtest.gpu.results import Results
from loadtest.gpu.steps import run
from tests.support.dry_run import dry_run
from tests.support.real_sizes import shallow

T5, TOWER = REAL.flant5["XL"]
FEW_STAGES = REAL.encoders[DETECTOR]["backbone_config"] | {"depths": [1] * 4}
FEW = REAL.encoders[DETECTOR] | {"backbone_config": FEW_STAGES, "encoder_layers": 1, "decoder_layers": 2}
SHALLOW = replace(
    REAL,
    flant5={"XL": (shallow(T5), shallow(TOWER))},
    encoders={name: shallow(config) for name, config in REAL.encoders.items()} | {DETECTOR: FEW},
    decoders={name: shallow(config) for name, config in REAL.decoders.items()},
    pairs=(2,),
    questions=(2,),
    batches=(2,),
    images=(2,),
    rounds=1,
)


class Unmeasured(Bench):
    """Runs what is to be measured once, on a device without a clock and a memory."""

    peak = 1e15

    def run_s(self, do):
        do()
        return 1.0

    def pace_s(self, do):
        return 1.0  # the caller has run it

    def operations(self, do):
        do()
        return 1  # PyTorch's counter takes most of the time

    def peak_bytes(self, do):
        do()
        return 1


class Blind(Decoder):
    """
    A decoder without the tower and its sums with deeper features, which read grids and masks as numbers.

    For the same reason transformers' own pass of whole chats is not run.
    """

    def __init__(self, bench, config):
        super().__init__(bench, config)
        model = self.network.module.model
        model.get_image_features = partial(features, model)
        model.language_model._deepstack_process = lambda states, *_: states

    def theirs(self, batch):
        return [0.0]


def features(model, pixels, grids):
    """Return features of images in the shapes of transformers."""
    width, depth = model.config.text_config.hidden_size, len(model.visual.deepstack_visual_indexes)
    shape = (len(pixels) // len(grids) // 4, width)
    made = [tuple(pixels.new_empty(shape) for _ in grids) for _ in range(1 + depth)]
    return SimpleNamespace(pooler_output=made[0], deepstack_features=made[1:])


@pytest.fixture
def bench(tmp_path) -> Iterator[Bench]:
    """A run on the first GPU, of which no number is computed."""
    results = Results(tmp_path / "real.jsonl", {"card": "none"})
    with dry_run():
        yield Unmeasured(SHALLOW, torch.device("cuda"), "bfloat16", tmp_path, results)


@pytest.mark.filterwarnings("ignore:CUDA is not available:UserWarning")  # of the reference's autocast
def test_the_passes_run_at_the_real_geometry(bench):
    """All tensors are on the device; compilers and graphs need a real one."""
    ways = {name: way for name, way in forward.WAYS.items() if not way.needs_cuda}
    run({"forward": lambda: forward.steps(bench, ways)}, bench.results, lambda: None)
    rows = [*bench.results.of("forward")]

    assert not [row for row in rows if row.failed]
    assert 3 == len(rows)


def test_the_encoders_run_at_the_real_geometry(bench):
    """As the service runs them, and as the libraries do."""
    run({"encoders": lambda: encoders.steps(bench)}, bench.results, lambda: None)
    rows = [*bench.results.of("encoders")]

    assert not [row for row in rows if row.failed]
    assert 14 == len(rows)


def test_a_decoder_runs_at_the_real_geometry(bench):
    """Its language model, as the service runs it."""
    run({"decoders": lambda: decoders.steps(bench, Blind)}, bench.results, lambda: None)
    rows = [*bench.results.of("decoders")]

    assert not [row for row in rows if row.failed]
    assert 5 == len(rows)


def test_vllms_checkpoints_have_the_published_sizes_and_no_weights(bench):
    """Billions of weights without the embeddings of tokens, which are read for one token at a time."""
    made = {make: make(bench) for make in (checkpoints.question_llm, checkpoints.vlm)}
    sizes = [vllm.weights(config.get_text_config()) / 1e9 for _, config in made.values()]
    [*_, (directory, llava)] = made.values()

    assert sizes == pytest.approx([7.616 - 0.545, 6.738 - 0.131], abs=1e-3)
    assert 0.3035 == pytest.approx(vllm.weights(llava.vision_config) / 1e9, abs=1e-4)
    assert not [*directory.parent.rglob("*.safetensors")]


def test_without_a_gpu_the_real_geometry_ends_with_one_line(monkeypatch, capsys, tmp_path):
    """And does not run for hours on a CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert 2 == command.main(["--results", str(tmp_path / "real.jsonl")])
    printed = capsys.readouterr()
    assert ("", 1) == (printed.out, printed.err.count("\n"))
    assert "--geometry tiny" in printed.err
    assert [] == [*tmp_path.iterdir()]
