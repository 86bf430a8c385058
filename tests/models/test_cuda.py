"""
Every model's `score` on a CUDA device that is not there, in the sizes that are served.

PyTorch follows the devices of all tensors without computing.  A tensor that was left on the CPU raises here
as it does on a GPU.  Speed, kernels and numbers are not seen.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import PIL.Image
import pytest
import torch
from torch.overrides import TorchFunctionMode

from models.core.calls import (
    ChoiceCall,
    EntailmentCall,
    FirstTokenCall,
    GenerateCall,
    ImageCall,
    LabelCall,
    LikelihoodCall,
    TextCall,
)
from models.core.outcomes import Choices, Embedding, Entailment, FirstToken, Likelihood
from models.families.batches import FeatureCache
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.families.clip_flant5.t5 import PositionBias
from models.families.nli.model import Nli
from models.families.question_llm.model import QuestionLLM
from models.images.image import Image
from tests.support import real_sizes
from tests.support.dry_run import dry_run

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


@pytest.fixture(scope="module", autouse=True)
def dry() -> Iterator[None]:
    """One dry run for all tests, since a tensor of one is none of another."""
    with dry_run():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], Any]:
    """The model of a name, made once, without weights, with few layers unless its name says how many."""
    flant5 = partial(ClipFlanT5, dtype="bfloat16", features_mb=8, **ON_A_GPU)
    nli = partial(Nli, dtype="bfloat16", **ON_A_GPU)
    directory = tmp_path_factory.mktemp("real")
    file = directory / "weights.pt"
    file.touch()

    def few(kind: Callable[..., Path], *sizes: Any) -> Path:
        return real_sizes.few_layers(
            kind(directory / f"{kind.__name__} {len([*directory.iterdir()])}", *sizes)
        )

    def clip(name: str) -> Clip:
        known = open_clip.factory._MODEL_CONFIGS
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(known, name, real_sizes.shallow(known[name]))
            return Clip(name, pretrained=str(file), dtype="bfloat16", **ON_A_GPU)

    kinds: dict[str, Callable[[], Any]] = {
        "xl": lambda: flant5(few(real_sizes.flant5, "xl")),
        "xl of 24 layers": lambda: flant5(real_sizes.flant5(directory / "xl", "xl")),
        "xxl": lambda: flant5(few(real_sizes.flant5, "xxl")),
        "ViT-L-14-336": lambda: clip("ViT-L-14-336-quickgelu"),
        "ViT-L-14": lambda: clip("ViT-L-14-quickgelu"),
        "ViT-H-14": lambda: clip("ViT-H-14"),
        "ViT-H-14 of transformers": lambda: Clip(
            str(few(real_sizes.without_weights, real_sizes.VIT_H_14)), dtype="float32", **ON_A_GPU
        ),
        "deberta": lambda: nli(few(real_sizes.nli, real_sizes.DEBERTA)),
        "true": lambda: nli(few(real_sizes.nli, real_sizes.TRUE)),
        "llm": lambda: QuestionLLM(few(real_sizes.question_llm), dtype="bfloat16", **ON_A_GPU),
    }
    held = cache(lambda name: kinds[name]())

    def fresh(name: str) -> Any:
        model = held(name)
        if isinstance(model, ClipFlanT5):
            model._scorer._features = FeatureCache(8 * 2**20)  # or a picture would pass by the vision tower
        return model

    return fresh


def scored(model: Any, calls: list[Any]) -> list[Any]:
    return model.score([model.prepare(call) for call in calls])


@pytest.mark.parametrize("size", ["xl of 24 layers", "xxl"])
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
            elif type(inner).__module__.startswith("models.families.clip_flant5"):
                found += tensors_of(inner)
    return found


def put(part: Any, name: str, tensor: torch.Tensor) -> None:
    """Have *part* hold *tensor*, and nothing that it made of the one before."""
    setattr(part, name, tensor)
    if isinstance(part, PositionBias):
        part._line.cache_clear()


def test_a_weight_of_clip_flant5_on_the_cpu_raises(made, monkeypatch):
    """Each kind of tensor that its forward pass holds, one at a time; without that the batch is answered."""
    model = made("xl")
    calls, places = VQA_CALLS[:4], {}
    for part, name in tensors_of(model.forward):
        places[type(part), name] = part

    assert len(places) > 15
    scored(model, calls)
    monkeypatch.setattr(model._scorer, "_features", FeatureCache(0))  # see `fresh`
    for (_, name), part in places.items():
        kept = getattr(part, name)
        put(part, name, kept.cpu())
        with pytest.raises(RuntimeError, match="device"):
            scored(model, calls)
        put(part, name, kept)
    scored(model, calls)


def test_token_ids_that_are_not_brought_to_the_device_raise(made, monkeypatch):
    """What a forward pass uploads."""
    model = made("xl")
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
    try:
        with pytest.raises(RuntimeError, match="device"):
            scored(model, calls)
    finally:
        last.to("cuda")
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
    assert first > 3 * real_sizes.FEW  # three products or more in each layer
    assert {"read"} == {*order.said[first:]}


def test_reading_in_between_is_seen(made, monkeypatch):
    """The test above can fail."""
    model = made("xl")
    encode = model.forward.encode

    def waiting(features, texts):
        features.sum().item()
        return encode(features, texts)

    monkeypatch.setattr(model.forward, "encode", waiting)
    with Order() as order:
        scored(model, VQA_CALLS[:1])

    assert "product" in order.said[order.said.index("read") :]


def is_aligned(mask: torch.Tensor) -> bool:
    """Whether fused kernels read *mask* in place: contiguous rows at multiples of 16."""
    *outer, inner = mask.stride()
    return inner == 1 and mask.shape[-1] % 16 == 0 and not any(stride % 16 for stride in outer)


def test_the_encoder_s_mask_is_one_that_fused_kernels_take(made, monkeypatch):
    """They would copy another one in each layer, and it is the largest tensor of a batch."""
    model, seen = made("xl"), []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watched(*states, attn_mask=None, **options):
        seen.append(attn_mask)
        return attend(*states, attn_mask=attn_mask, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    scored(model, VQA_CALLS[:1] + VQA_CALLS[4:5])  # two questions of different length
    encoder = [mask for mask in seen if mask is not None and mask.shape[-1] > 600]

    assert len(encoder) == real_sizes.FEW
    assert all(map(is_aligned, encoder))
