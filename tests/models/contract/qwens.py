"""Models on a Qwen: reward models, which share tests of their own, and those that answer questions."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2_5_VLModel, Qwen2VLModel, Qwen3VLModel

from models.core.calls import Call, EditCall, LabelCall, LikelihoodCall, ProgressCall, RewardCall, VideoCall
from models.core.outcomes import Likelihood, Reward
from models.families.editreward.model import EditReward
from models.families.hpsv3.model import Hpsv3
from models.families.hpsv3pp.model import Hpsv3pp
from models.families.videoalign.model import VideoAlign
from models.families.vl_inputs import Patches
from models.families.vl_reward import VlReward
from tests.models.contract.kind import Gpu, Kind
from tests.models.contract.references import QwenReference, recorded
from tests.support.vl_checkpoints import (
    PICTURES,
    calls,
    configure,
    editreward,
    frames,
    golden,
    hpsv3,
    hpsv3pp,
    qwen2_5_vl,
    qwen2_vl,
    qwen3_vl,
    qwen_vl,
    videoalign,
)

SAID = {name: golden(name) for name in ("hpsv3", "hpsv3pp", "editreward", "videoalign")}
FIRST = PICTURES["alpha.png"]  # of the recorded tokens

QWEN2_VL_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vocab_size": 708,
    "vision_config": {
        "depth": 2,
        "embed_dim": 1280,
        "mlp_ratio": 4,
        "num_heads": 16,
        "hidden_size": 3584,
        "in_chans": 3,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
    },
}
QWEN2_5_VL_7B = {
    **QWEN2_VL_7B,
    "vision_config": {
        "depth": 2,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
        "in_chans": 3,
        "patch_size": 14,
        "fullatt_block_indexes": [1],
    },
}
QWEN3_VL_8B = {
    "text_config": {
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_hidden_layers": 2,
        "vocab_size": 708,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        "rope_theta": 5_000_000,
        "max_position_embeddings": 262_144,
    },
    "vision_config": {
        "depth": 2,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "out_hidden_size": 4096,
        "patch_size": 16,
        "deepstack_visual_indexes": [0],
    },
}


@dataclass(frozen=True, kw_only=True)
class QwenGpu(Gpu):
    """
    A dry run, in which the vision tower has stand-ins: it reads its grids as numbers.

    Attributes:
        width: of the language model.
        columns: numbers of a patch.
        reads_pixels: pixels have a stand-in, too.
    """

    width: int
    columns: int
    reads_pixels: bool = False

    @property
    def seen(self) -> Sequence[Any]:
        """One run of the tower."""
        return [("cuda", self.dtype, "cuda", self.columns)]

    def stand_ins(self, model: Any, patch: Any) -> Sequence[Any]:
        """Also for positions in three dimensions, and sums with features of deeper layers."""
        seen = list[Any]()
        outer = model.network.module
        inner = getattr(outer, "model", outer)
        has_deeper = hasattr(inner.language_model, "_deepstack_process")

        def features(pixels, grids, **_):
            dtype = str(pixels.dtype).removeprefix("torch.")
            seen.append((pixels.device.type, dtype, grids.device.type, pixels.shape[1]))
            rows = torch.empty(len(pixels) // 4, self.width, dtype=pixels.dtype, device=pixels.device)
            made = rows.split(len(rows) // len(grids))
            deeper = {"deepstack_features": [made]} if has_deeper else {}
            return type("Features", (), {"pooler_output": made, **deeper})

        def positions(input_ids, mm_token_type_ids, **_):
            assert ("cuda", "cuda") == (input_ids.device.type, mm_token_type_ids.device.type)
            return torch.zeros(3, *input_ids.shape, dtype=torch.long, device="cuda"), None

        def deeper(states, mask, embeddings):
            assert {"cuda"} == {states.device.type, mask.device.type, embeddings.device.type}
            return states

        for medium in ("image", "video"):
            patch.setattr(inner, f"get_{medium}_features", features)
        if has_deeper:
            patch.setattr(inner.language_model, "_deepstack_process", deeper)
            patch.setattr(inner, "get_rope_index", positions)
        if self.reads_pixels:
            patches = Patches(torch.zeros(784, self.columns), (1, 28, 28))
            patch.setattr(model._pixels, "of", lambda image: patches)
        return seen


# --- reward models ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RewardKind(Kind):
    """
    A reward model, whose role has the name of its family.

    Attributes:
        model: the class.
        base: writes the base model's files alone.
        own: the checkpoint's own files.
        call: one about a prompt, and a picture in place of the recorded one.
        chats: in what a model prepared.
    """

    model: type[VlReward]
    base: Callable[[Path], Path]
    own: Sequence[str]
    call: Callable[..., Call]
    chats: Callable[[Any], Sequence[Any]] = lambda data: [data]

    @property
    def said(self) -> dict[str, Any]:
        """The recorded outputs of the released code."""
        return SAID[self.family]

    def ids(self, prompt: Mapping[str, Any]) -> list[list[int]]:
        """Return the recorded tokens of a prompt's chats."""
        return [ids for name, ids in prompt.items() if name != "text"]


def reward(name: str, **given: Any) -> RewardKind:
    """Return the reward model of a family, with the recorded numbers; its head stays in float32."""
    rows = [row["outputs"] for row in SAID[name]["scores"]]
    return RewardKind(
        family=name,
        result=Reward,
        reference=recorded(given["calls"], rows),
        rounded=lambda model: model.network.module,
        exact=lambda model: [model.head],
        **{"parts": lambda model: [model.head], **given},
    )


def enlarged(
    name: str,
    file: str,
    base: Callable[[Path], Path],
    network: Any,
    sizes: Mapping[str, Any],
    head: Mapping[int, int],
) -> Callable[[Path], Path]:
    """
    Return what writes a reward model in the published size with two layers, all weights one number.

    Args:
        file: with the weights.
        network: of the base model.
        sizes: of the configuration of the base model.
        head: sizes of the small head's tensors to those of the published one.
    """

    def make(directory: Path) -> Path:
        configure(base(directory), **sizes)
        config = network.config_class.from_pretrained(directory)
        with torch.device("meta"):
            tensors = network(config).state_dict()
        shapes = {f"model.{each}": tensor.shape for each, tensor in tensors.items()}
        for each, shape in SAID[name]["tensors"].items():
            if not each.startswith(("model.", "visual.", "lm_head")):
                shapes[each] = [head.get(size, size) for size in shape]
        held = {each: torch.zeros(1).expand(*shape) for each, shape in shapes.items()}
        torch.save(held, directory / file)
        return directory

    return make


HPSV3 = reward(
    "hpsv3",
    model=Hpsv3,
    make=hpsv3,
    base=qwen2_vl,
    own=("HPSv3.safetensors",),
    every=4,
    calls=calls(SAID["hpsv3"]),
    call=lambda prompt, picture=FIRST: RewardCall(picture, prompt),
    near={"bfloat16": 0.05, "float16": 0.005},
    last=lambda model: model.head[-1].bias,
    gpu=QwenGpu(
        dtype="float16",
        make=enlarged("hpsv3", "HPSv3.pth", qwen2_vl, Qwen2VLModel, QWEN2_VL_7B, {32: 3584}),
        width=3584,
        columns=1176,
    ),
)

HPSV3PP = reward(
    "hpsv3pp",
    model=Hpsv3pp,
    make=hpsv3pp,
    base=qwen3_vl,
    own=("hpsv3++.pth",),
    every=4,
    calls=[
        ProgressCall(PICTURES[row["image"]], prompt["text"], row["progress"])
        for row in SAID["hpsv3pp"]["scores"]
        for prompt in [SAID["hpsv3pp"]["prompts"][row["prompt"]]]
    ],
    call=lambda prompt, picture=FIRST: ProgressCall(picture, prompt, 0.3),
    chats=lambda data: data[:1],
    near={"bfloat16": 0.1, "float16": 0.01},
    last=lambda model: model.head.film_gen[-1].bias,
    parts=lambda model: [model.head.film_gen],
    gpu=QwenGpu(
        make=enlarged(
            "hpsv3pp", "hpsv3++.pth", qwen3_vl, Qwen3VLModel, QWEN3_VL_8B, {32: 4096, 64: 8192, 24: 256}
        ),
        width=4096,
        columns=1536,
        reads_pixels=True,
    ),
)

EDITREWARD = reward(
    "editreward",
    model=EditReward,
    make=editreward,
    base=qwen2_5_vl,
    own=("model.safetensors",),
    every=3,
    calls=[
        EditCall(PICTURES[row["image"]], prompt["text"], PICTURES[row["source"]])
        for row in SAID["editreward"]["scores"]
        for prompt in [SAID["editreward"]["prompts"][row["prompt"]]]
    ],
    call=lambda prompt, picture=FIRST: EditCall(picture, prompt, PICTURES[SAID["editreward"]["source"]]),
    chats=lambda data: data,
    near={"bfloat16": 0.2, "float16": 0.02},
    last=lambda model: model.head[1][-1].bias,
    parts=lambda model: [model.head[1]],
    gpu=QwenGpu(
        make=enlarged("editreward", "model.pth", qwen2_5_vl, Qwen2_5_VLModel, QWEN2_5_VL_7B, {32: 3584}),
        width=3584,
        columns=1176,
    ),
)

VIDEOS = [
    VideoCall(frames(SAID["videoalign"], row), SAID["videoalign"]["prompts"][row["prompt"]]["text"])
    for row in SAID["videoalign"]["scores"]
]
VIDEOALIGN = reward(
    "videoalign",
    model=VideoAlign,
    make=videoalign,
    base=qwen2_vl,
    own=("model_config.json", "checkpoint-20/model.pth"),
    calls=VIDEOS,
    every=5,
    call=lambda prompt, picture=None: VideoCall((picture,) * 2 if picture else VIDEOS[0].frames, prompt),
    within=1e-4,
    near={"bfloat16": 0.2, "float16": 0.02},
    last=lambda model: model.head.weight,
    gpu=QwenGpu(dtype="float16", width=32, columns=1176),
)

REWARDS = {kind.family: kind for kind in (HPSV3, HPSV3PP, EDITREWARD, VIDEOALIGN)}


def copied(directory: Path, names: Sequence[str], where: Path) -> Path:
    """Copy files of a *directory*."""
    for name in names:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(directory / name, where / name)
    return where


# --- models that answer questions ---------------------------------------------------------------

TEXTS = ("a cat", "a red dog left of a blue square on a mat", "a red dog", "\n a cat <|im_end|><|image_pad|>")
SECOND = PICTURES["square.png"]
YES_NO = [
    LikelihoodCall(picture, f'Does this figure show "{text}"? Please answer yes or no.')
    for picture in (FIRST, SECOND)
    for text in TEXTS
]
LABELS = ("excellent", "bad", "very bad")
JUDGED = [
    LabelCall(SECOND, "How good is it?", LABELS, before)
    for before in ((), ("A drawing:", FIRST), (FIRST, "and", " then\n", SECOND, "\n\nlast:"))
]


def vqa(kind: str, sizes: Mapping[str, Any], columns: int, width: int) -> Kind:
    """Return a class of `qwen_vl`; on a GPU at the size of the published models with two layers."""
    return Kind(
        family="qwen_vl",
        make=partial(qwen_vl, kind=kind),
        settings=lambda directory: {"features_mb": 0},  # or a picture would pass by the vision tower
        calls=[*YES_NO, LikelihoodCall(FIRST, "A dog?", "very bad"), *JUDGED],
        result=Likelihood,
        reference=QwenReference,
        relative=1e-5,
        near={"bfloat16": 1},  # of words as likely as one in some hundreds
        rounded=lambda model: model.network.module,
        last=lambda model: model.network.module.lm_head.weight,
        parts=lambda model: [model.network.module.lm_head],
        gpu=QwenGpu(
            make=lambda directory: configure(qwen_vl(directory, kind), **sizes),
            settings={"features_mb": 64},
            width=width,
            columns=columns,
            reads_pixels=True,
        ),
    )


TEXT_OF_8B = {**QWEN3_VL_8B["text_config"], "vocab_size": 151_936}
VQAS = {
    "qwen2_5_vl": vqa("qwen2_5_vl", {**QWEN2_5_VL_7B, "vocab_size": 152_064}, 1176, 3584),
    "qwen3_vl": vqa("qwen3_vl", {**QWEN3_VL_8B, "text_config": TEXT_OF_8B}, 1536, 4096),
}
