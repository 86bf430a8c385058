"""
Every model's `score` on a CUDA device that is not there, in the sizes that are served.

PyTorch follows the devices of all tensors without computing.  A tensor that was left on the CPU raises here
as it does on a GPU.  Speed, kernels and numbers are not seen.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.overrides import TorchFunctionMode

from models.calls import (
    ChoiceCall,
    EntailmentCall,
    FirstTokenCall,
    GenerateCall,
    ImageCall,
    LabelCall,
    LikelihoodCall,
    TextCall,
)
from models.clip.model import Clip
from models.clip_flant5.features import FeatureCache
from models.clip_flant5.model import ClipFlanT5
from models.clip_flant5.t5 import PositionBias
from models.dry_run import dry_run
from models.image import Image
from models.meter import is_aligned
from models.nli.model import Nli
from models.outcomes import Choices, Embedding, Entailment, FirstToken, Likelihood
from models.question_llm.model import QuestionLLM
from tests.support import real_sizes
from tests.support.flant5_checkpoints import configure

ON_A_GPU = {"device": "cuda", "revision": "-"}
PICTURES = [
    Image.of(PIL.Image.fromarray(pixels), str(number))
    for number, pixels in enumerate(np.random.default_rng(1).integers(0, 256, (3, 40, 50, 3), np.uint8))
]
QUESTIONS = ["Is there a circle?", "Is the red circle left of the big blue square?"]
VQA_CALLS = [
    call
    for picture in PICTURES
    for question in QUESTIONS
    for call in (
        LikelihoodCall(picture, question),
        LikelihoodCall(picture, question, "a long answer " * 40),
        ChoiceCall(picture, question, ("red", "blue", "light green")),
        FirstTokenCall(picture, question, ("red", "blue")),
        LabelCall(picture, question, ("A", "B")),
    )
]
VQA_KINDS = [Likelihood, Likelihood, Choices, FirstToken, Choices] * 6
CLIP_CALLS = [*map(ImageCall, PICTURES), TextCall("a circle"), TextCall("a square")]
PAIRS = [EntailmentCall("a red circle " * 300, "red"), EntailmentCall("a dog", "a cat")]


@pytest.fixture
def made(tmp_path) -> Callable[[str], Any]:
    """The model of a name, without weights, within a dry run."""
    file = tmp_path / "weights.pt"
    file.touch()
    flant5 = partial(ClipFlanT5, dtype="bfloat16", features_mb=8, **ON_A_GPU)
    clip = partial(Clip, pretrained=str(file), dtype="bfloat16", **ON_A_GPU)
    nli = partial(Nli, dtype="bfloat16", **ON_A_GPU)
    directory = tmp_path / "checkpoint"
    kinds: dict[str, Callable[[], Any]] = {
        "xl": lambda: flant5(real_sizes.flant5(directory, "xl")),
        "xxl": lambda: flant5(real_sizes.flant5(directory, "xxl")),
        "xl of two layers": lambda: flant5(
            configure(real_sizes.flant5(directory, "xl"), num_layers=2, num_decoder_layers=2)
        ),
        "ViT-L-14-336": lambda: clip("ViT-L-14-336-quickgelu"),
        "ViT-L-14": lambda: clip("ViT-L-14-quickgelu"),
        "ViT-H-14": lambda: clip("ViT-H-14"),
        "ViT-H-14 of transformers": lambda: Clip(
            str(real_sizes.without_weights(directory, real_sizes.VIT_H_14)), dtype="float32", **ON_A_GPU
        ),
        "deberta": lambda: nli(real_sizes.nli(directory, real_sizes.DEBERTA)),
        "true": lambda: nli(real_sizes.nli(directory, real_sizes.TRUE)),
        "llm": lambda: QuestionLLM(real_sizes.question_llm(directory), dtype="bfloat16", **ON_A_GPU),
    }
    return lambda name: kinds[name]()


@pytest.fixture(autouse=True)
def meter():
    with dry_run() as meter:
        yield meter


def scored(model: Any, calls: list[Any]) -> list[Any]:
    return model.score([model.prepare(call) for call in calls])


@pytest.mark.parametrize("size", ["xl", "xxl"])
def test_clip_flant5_answers_every_kind_of_call(made, size):
    """Likelihoods with short and long answers, choices and first tokens, in one batch."""
    model = made(size)

    assert VQA_KINDS == [*map(type, scored(model, VQA_CALLS))]
    assert VQA_KINDS[:4] == [*map(type, scored(model, VQA_CALLS[:4]))]  # its picture was seen before


@pytest.mark.parametrize("name", ["ViT-L-14-336", "ViT-L-14", "ViT-H-14", "ViT-H-14 of transformers"])
def test_clips_embed_pictures_and_texts(made, name):
    """Both towers in one batch."""
    assert [Embedding] * 5 == [*map(type, scored(made(name), CLIP_CALLS))]


@pytest.mark.parametrize("kind", ["deberta", "true"])
def test_nli_models_judge_pairs(made, kind):
    """A long pair and a short one in one batch, so one of them is padded."""
    assert [Entailment] * 2 == [*map(type, scored(made(kind), PAIRS))]


def test_the_question_llm_writes(made):
    """Three tokens, the later ones with the keys and values of those before."""
    [outcome] = scored(made("llm"), [GenerateCall("Write.", "a red circle", max_tokens=3)])

    assert "longer than 3 tokens" in str(outcome)


# --- a tensor that was left on the CPU ----------------------------------------------------------


def tensors_of(part: Any) -> list[tuple[Any, str]]:
    """Where tensors are kept in the parts that a forward pass is made of."""
    found = []
    for name, value in vars(part).items():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, torch.Tensor):
                found.append((part, name))
            elif type(inner).__module__.startswith("models.clip_flant5"):
                found += tensors_of(inner)
    return found


def put(part: Any, name: str, tensor: torch.Tensor) -> None:
    """Have *part* hold *tensor*, and nothing that it made of the one before."""
    setattr(part, name, tensor)
    if isinstance(part, PositionBias):
        part._line.cache_clear()


def test_a_weight_of_clip_flant5_on_the_cpu_raises(made):
    """Each kind of tensor that its forward pass holds, one at a time; without that the batch is answered."""
    model = made("xl of two layers")
    calls, places = VQA_CALLS[:4], {}
    for part, name in tensors_of(model.forward):
        places[type(part), name] = part

    assert len(places) > 15
    scored(model, calls)
    model._scorer._seen = FeatureCache(0)  # or a picture that was seen before would pass by the vision tower
    for (_, name), part in places.items():
        kept = getattr(part, name)
        put(part, name, kept.cpu())
        with pytest.raises(RuntimeError, match="device"):
            scored(model, calls)
        put(part, name, kept)
    scored(model, calls)


def test_token_ids_that_are_not_brought_to_the_device_raise(made, monkeypatch):
    """What a forward pass uploads."""
    model = made("xl of two layers")
    monkeypatch.setattr(model.forward, "_upload", torch.tensor)

    with pytest.raises(RuntimeError, match="device"):
        scored(model, VQA_CALLS[:1])


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("ViT-L-14-336", CLIP_CALLS),
        ("deberta", PAIRS),
        ("true", PAIRS),
        ("llm", [GenerateCall("Write.", "a red circle", max_tokens=3)]),
    ],
)
def test_a_module_on_the_cpu_raises(made, name, calls):
    """The last projection of each network that is made of modules."""
    model = made(name)
    network = model._network if hasattr(model, "_network") else model.network
    network = getattr(network, "_network", network)
    [*_, last] = [m for m in network.modules() if isinstance(m, torch.nn.Linear | torch.nn.LayerNorm)]
    last.to("cpu")

    with pytest.raises(RuntimeError, match="device"):
        scored(model, calls)


# --- waiting for the device ---------------------------------------------------------------------


class Order(TorchFunctionMode):
    """The order of matrix products and of numbers that are read back, which wait for the device."""

    READ = ("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "equal")

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        on_device = any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args)
        if on_device and name in self.READ:
            self.said.append("read")
        elif name in ("linear", "matmul", "bmm", "conv2d", "multi_head_attention_forward"):
            self.said.append("product")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "calls"), [("xl", VQA_CALLS[:1] * 3), ("ViT-L-14-336", CLIP_CALLS[:3])])
def test_a_batch_is_queued_whole_before_a_number_is_read(made, name, calls):
    """The CPU does not wait for the GPU in between."""
    model = made(name)
    ready = [model.prepare(call) for call in calls]
    with Order() as order:
        model.score(ready)

    first = order.said.index("read")
    assert first > 70  # three products or more in each of 24 layers
    assert {"read"} == {*order.said[first:]}


def test_reading_in_between_is_seen(made, monkeypatch):
    """The test above can fail."""
    model = made("xl of two layers")
    encode = model.forward.encode

    def waiting(features, texts):
        features.sum().item()
        return encode(features, texts)

    monkeypatch.setattr(model.forward, "encode", waiting)
    with Order() as order:
        scored(model, VQA_CALLS[:1])

    assert "product" in order.said[order.said.index("read") :]


# --- the meter ----------------------------------------------------------------------------------


def test_the_meter_counts_what_lives_at_once(meter):
    """Views and what is changed in place take nothing, and what is dropped no longer counts."""
    kept = torch.zeros(1000, device="cuda")
    other = kept + 1
    other.mul_(2)[10:].view(-1)
    del other
    torch.zeros(500, dtype=torch.bfloat16, device="cuda")
    torch.zeros(10**9)

    assert (4000, 8000) == (meter.held, meter.peak)


def test_the_encoder_s_mask_is_one_that_fused_kernels_take(made, monkeypatch):
    """They would copy another one in each of 24 layers, and it is the largest tensor of a batch."""
    model, seen = made("xl"), []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watched(*states, attn_mask=None, **options):
        seen.append(attn_mask)
        return attend(*states, attn_mask=attn_mask, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    scored(model, VQA_CALLS[:1] + VQA_CALLS[4:5])  # two questions of different length
    encoder = [mask for mask in seen if mask is not None and mask.shape[-1] > 600]

    assert len(encoder) == 24
    assert all(map(is_aligned, encoder))


@torch.inference_mode()
def test_a_mask_that_lies_otherwise_is_copied(meter):
    """Across, or with rows of 1,001 numbers: once more its size."""
    attend = torch.nn.functional.scaled_dot_product_attention
    across = torch.zeros(1, 1, 1008, 1008, device="cuda").transpose(2, 3)
    odd = torch.zeros(1, 1, 1001, 1001, device="cuda")

    for mask in (across, odd):
        states = torch.zeros(1, 1, len(mask[0, 0]), 64, device="cuda")
        held = meter.peak = meter.held
        attend(states, states, states, attn_mask=mask)
        assert meter.peak - held == 4 * len(mask[0, 0]) * 1008 + states.nbytes


@torch.inference_mode()
def test_fused_attention_holds_no_scores(meter):
    """1,000 x 1,000 scores of a head would be 4 MB; a mask on another device raises."""
    states = torch.zeros(1, 1, 1000, 64, device="cuda")
    attend = torch.nn.functional.scaled_dot_product_attention
    assert attend(states, states, states).nbytes == states.nbytes
    assert meter.peak == 2 * states.nbytes

    with pytest.raises(RuntimeError, match="several devices: cpu, cuda:0"):
        attend(states, states, states, attn_mask=torch.zeros(1, 1, 1000, 1000))
