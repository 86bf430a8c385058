"""What differs between the reward models on a Qwen, for the tests that all of them share."""

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2_5_VLModel, Qwen2VLModel, Qwen3VLModel

from models.core.calls import Call, EditCall, ProgressCall, RewardCall, VideoCall
from models.families.editreward.model import EditReward
from models.families.hpsv3.model import Hpsv3
from models.families.hpsv3pp.model import Hpsv3pp
from models.families.videoalign.model import VideoAlign
from models.families.vl_inputs import Patches
from models.families.vl_reward import VlReward
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
    videoalign,
)

ON_THE_CPU = {"dtype": "float32", "device": "cpu"}
SAID = {name: golden(name) for name in ("hpsv3", "hpsv3pp", "editreward", "videoalign")}
FIRST = PICTURES["alpha.png"]  # of the recorded tokens


@dataclass(frozen=True, kw_only=True)
class OnGpu:
    """
    A checkpoint for a dry run of a GPU.

    Attributes:
        dtype: of the weights.
        network: of the base model, for one of the published sizes with two layers; None for the small one.
        sizes: of the configuration of the base model.
        head: sizes of the small head's tensors to those of the published one.
        width: of the language model.
        columns: numbers of a patch.
    """

    dtype: torch.dtype
    network: Any = None
    sizes: Mapping[str, Any]
    head: Mapping[int, int]
    width: int
    columns: int


@dataclass(frozen=True, kw_only=True)
class Kind:
    """
    A reward model.

    Attributes:
        name: of its family and its role.
        model: the class.
        make: writes a small checkpoint in the published layout.
        base: writes the base model's files alone.
        own: the checkpoint's own files.
        calls: of the recorded scores, in their order.
        call: one about a prompt, and a picture in place of the recorded one.
        chats: in what a model prepared.
        within: how near outputs are to those of the released code.
        near: how near they are in half precision.
        last: the numbers of a model that are nearest to its outputs.
        broken: such a number that is not finite.
        part: of a model's head, to be left on the CPU.
        gpu: for a dry run.
    """

    name: str
    model: type[VlReward]
    make: Callable[[Path], Path]
    base: Callable[[Path], Path]
    own: Sequence[str]
    calls: Sequence[Call]
    call: Callable[..., Call]
    chats: Callable[[Any], Sequence[Any]] = lambda data: [data]
    within: float = 1e-5
    near: Mapping[str, float]
    last: Callable[[Any], torch.Tensor]
    broken: float = math.nan
    part: Callable[[Any], torch.nn.Module] = lambda model: model.head
    gpu: OnGpu

    @property
    def said(self) -> dict[str, Any]:
        """The recorded outputs of the released code."""
        return SAID[self.name]

    @property
    def expected(self) -> list[list[float]]:
        return [row["outputs"] for row in self.said["scores"]]

    def ids(self, prompt: Mapping[str, Any]) -> list[list[int]]:
        """Return the recorded tokens of a prompt's chats."""
        return [ids for name, ids in prompt.items() if name != "text"]

    def on_gpu(self, directory: Path) -> Path:
        """Write the checkpoint for a dry run, whose weights are all one number if it is a large one."""
        if self.gpu.network is None:
            return self.make(directory)
        self.base(directory)
        configure(directory, **self.gpu.sizes)
        config = self.gpu.network.config_class.from_pretrained(directory)
        with torch.device("meta"):
            network = self.gpu.network(config).state_dict()
        shapes = {f"model.{name}": each.shape for name, each in network.items()}
        for name, shape in self.said["tensors"].items():
            if not name.startswith(("model.", "visual.", "lm_head")):
                shapes[name] = [self.gpu.head.get(size, size) for size in shape]
        held = {name: torch.zeros(1).expand(*shape) for name, shape in shapes.items()}
        torch.save(held, directory / Path(self.own[0]).with_suffix(".pth"))
        return directory


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


def stand_ins(model: Any, patch: Any) -> None:
    """
    Have HPSv3++ do without what reads grids, tokens and masks as numbers, which a dry run does not have.

    Those are its positions in three dimensions, and the sums with deeper features.
    """

    def positions(input_ids, mm_token_type_ids, **_):
        assert ("cuda", "cuda") == (input_ids.device.type, mm_token_type_ids.device.type)
        return torch.zeros(3, *input_ids.shape, dtype=torch.long, device="cuda"), None

    def deeper(states, mask, embeddings):
        assert {"cuda"} == {states.device.type, mask.device.type, embeddings.device.type}
        return states

    patch.setattr(model.network.module, "get_rope_index", positions)
    patch.setattr(model.network.module.language_model, "_deepstack_process", deeper)
    patch.setattr(model._pixels, "of", lambda image: Patches(torch.zeros(784, 1536), (1, 28, 28)))


HPSV3 = Kind(
    name="hpsv3",
    model=Hpsv3,
    make=hpsv3,
    base=qwen2_vl,
    own=("HPSv3.safetensors",),
    calls=calls(SAID["hpsv3"]),
    call=lambda prompt, picture=FIRST: RewardCall(picture, prompt),
    near={"bfloat16": 0.05, "float16": 0.005},
    last=lambda model: model.head[-1].bias,
    gpu=OnGpu(
        dtype=torch.float16,
        network=Qwen2VLModel,
        sizes=QWEN2_VL_7B,
        head={32: 3584},
        width=3584,
        columns=1176,
    ),
)

HPSV3PP = Kind(
    name="hpsv3pp",
    model=Hpsv3pp,
    make=hpsv3pp,
    base=qwen3_vl,
    own=("hpsv3++.pth",),
    calls=[
        ProgressCall(PICTURES[row["image"]], prompt["text"], row["progress"])
        for row in SAID["hpsv3pp"]["scores"]
        for prompt in [SAID["hpsv3pp"]["prompts"][row["prompt"]]]
    ],
    call=lambda prompt, picture=FIRST: ProgressCall(picture, prompt, 0.3),
    chats=lambda data: data[:1],
    near={"bfloat16": 0.1, "float16": 0.01},
    last=lambda model: model.head.film_gen[-1].bias,
    broken=math.inf,
    part=lambda model: model.head.film_gen,
    gpu=OnGpu(
        dtype=torch.bfloat16,
        network=Qwen3VLModel,
        sizes=QWEN3_VL_8B,
        head={32: 4096, 64: 8192, 24: 256},
        width=4096,
        columns=1536,
    ),
)

EDITREWARD = Kind(
    name="editreward",
    model=EditReward,
    make=editreward,
    base=qwen2_5_vl,
    own=("model.safetensors",),
    calls=[
        EditCall(PICTURES[row["image"]], prompt["text"], PICTURES[row["source"]])
        for row in SAID["editreward"]["scores"]
        for prompt in [SAID["editreward"]["prompts"][row["prompt"]]]
    ],
    call=lambda prompt, picture=FIRST: EditCall(picture, prompt, PICTURES[SAID["editreward"]["source"]]),
    chats=lambda data: data,
    near={"bfloat16": 0.2, "float16": 0.02},
    last=lambda model: model.head[1][-1].bias,
    part=lambda model: model.head[1],
    gpu=OnGpu(
        dtype=torch.bfloat16,
        network=Qwen2_5_VLModel,
        sizes=QWEN2_5_VL_7B,
        head={32: 3584},
        width=3584,
        columns=1176,
    ),
)

VIDEOS = [
    VideoCall(frames(SAID["videoalign"], row), SAID["videoalign"]["prompts"][row["prompt"]]["text"])
    for row in SAID["videoalign"]["scores"]
]
VIDEOALIGN = Kind(
    name="videoalign",
    model=VideoAlign,
    make=videoalign,
    base=qwen2_vl,
    own=("model_config.json", "checkpoint-20/model.pth"),
    calls=VIDEOS,
    call=lambda prompt, picture=None: VideoCall((picture,) * 2 if picture else VIDEOS[0].frames, prompt),
    within=1e-4,
    near={"bfloat16": 0.2, "float16": 0.02},
    last=lambda model: model.head.weight,
    gpu=OnGpu(dtype=torch.float16, sizes={}, head={}, width=32, columns=1176),
)

KINDS = {kind.name: kind for kind in (HPSV3, HPSV3PP, EDITREWARD, VIDEOALIGN)}


def table(kind: Kind, directory: Path | str, **more: Any) -> Any:
    """Return the settings of a model's table."""
    return kind.model.family.settings(family=kind.name, role=kind.name, checkpoint=str(directory), **more)


def copied(directory: Path, names: Sequence[str], where: Path) -> Path:
    """Copy files of a *directory*."""
    for name in names:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(directory / name, where / name)
    return where
