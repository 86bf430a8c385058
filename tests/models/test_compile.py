"""`compile = true`: the blocks of CLIP-FlanT5 are compiled at the start."""

import re
from functools import partial

import PIL.Image
import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config

from models.checkpoints.locate import DEMO
from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image

load = partial(ClipFlanT5, DEMO / "clip_flant5", dtype="float32", device="cpu", compile=True)
PICTURES = [Image.of(PIL.Image.new("RGB", (40, 30), (shade, 0, 0))) for shade in range(0, 240, 20)]


@pytest.fixture(autouse=True)
def forgotten():
    """Nothing is compiled before or after."""
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


def batch(model, pictures, questions, words, answers=("Yes",)):
    """Prepared calls: questions about each of a few pictures, with more *words* in each than in the last."""
    return [
        model.prepare(LikelihoodCall(picture, f"Is it {'red ' * words * number}?", answer))
        for picture in PICTURES[:pictures]
        for number in range(1, 1 + questions)
        for answer in answers
    ]


def test_the_start_says_how_long_it_compiles_and_no_batch_compiles_later(monkeypatch, caplog):
    """Of any number of pictures, questions, answers and tokens; traced only, as kernels take a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    with caplog.at_level("INFO", "scoregate.models"):
        model = load()
    compiled = counters["stats"]["unique_graphs"]
    plain = ClipFlanT5(DEMO / "clip_flant5", dtype="float32", device="cpu")
    with torch.compiler.set_stance("fail_on_recompile"):
        for sizes in [
            (1, 1, 2),
            (2, 1, 30),
            (12, 1, 9),
            (5, 3, 10),
            (1, 8, 1),
            (3, 2, 5, ("Yes", "a red circle")),
        ]:
            calls = batch(model, *sizes)
            scored = [found.probability for found in model.score(calls)]

            assert scored == pytest.approx([found.probability for found in plain.score(calls)], abs=1e-5)
    assert re.fullmatch(r"clip_flant5: cpu: torch\.compile took [\d.]+ s", caplog.messages[-1])
    assert compiled > 0


def test_without_a_compiler_the_error_is_one_line(monkeypatch, tmp_path):
    """At the start, with the setting's name."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    message = r"^compile = true: .*No working C\+\+ compiler found.*$"
    without_compiler = config.patch({"cpp.cxx": (None, "no-such-compiler")})

    with without_compiler, pytest.raises(CheckpointError, match=message):
        load()
