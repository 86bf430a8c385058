"""
LAION's aesthetic predictors (Schuhmann et al. 2022, "LAION-5B"): a head on a CLIP's embedding of the image
returns a score from about 1 to 10.

Version 2 has five layers without activations ("sac+logos+ava1-l14-linearMSE"), version 1 a single one.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from models.checkpoints.info import digest_of
from models.checkpoints.locate import hub_file, path_of
from models.checkpoints.weights import num_parameters, read_file
from models.core.calls import ImageCall, RewardCall
from models.core.contract import CheckpointError, Prepared
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.aesthetic import FAMILY, AestheticSettings
from models.families.clip.model import Clip
from models.families.clip.model import from_settings as clip_from_settings
from models.families.clip.source import plan as plan_clip
from models.families.reward_heads import linear_head, width_of


def head_file(head: str) -> Path:
    """Return the path of the setting `head`.  Raises `CheckpointError` if there is no such file."""
    path = path_of(head)
    if not head or not path.is_file():
        raise CheckpointError(f"{head or '(no head)'}: no such file; `head` names the predictor's weights")
    return path


def load_head(path: Path) -> nn.Module:
    """Load the head in float64: scores up to 11 with an error below 1e-6.  Raises `CheckpointError`."""
    tensors = read_file(path, "cpu")
    head = linear_head(tensors, path)
    head.load_state_dict(tensors)
    return head.double().eval()


def plan(settings: AestheticSettings) -> Plan:
    """Return the plan of the CLIP, with the parameters of the head.  Same errors as for the CLIP."""
    clip, file = plan_clip(settings), hub_file(settings.head)
    if file and not file.cached():
        return replace(clip, loads=f"{clip.loads} and {file.name} of {file.shown}")
    path = (file and file.cached()) or head_file(settings.head)
    linear_head(read_file(path, "meta"), path)  # raises for a file of something else
    total = None if clip.num_parameters is None else clip.num_parameters + num_parameters([path])
    return replace(clip, loads=f"{clip.loads} and {path.name}", num_parameters=total)


class Aesthetic:
    """
    A CLIP with a small head, which runs in float64 on the CPU.

    Args:
        head: the file of the head.
        id: label of the scores; by default the names of the CLIP and the head.

    Raises:
        CheckpointError: the head cannot be read, or takes embeddings of another width than the CLIP's.
    """

    def __init__(self, clip: Clip, head: Path, *, id: str = "") -> None:
        self._clip, self._head = clip, load_head(head)
        [example] = clip.score([clip.prepare(clip.example())])
        width = width_of(self._head)
        if width != len(example.vector):
            raise CheckpointError(
                f"{head}: the head takes embeddings of {width} numbers, and those of {clip.info.id} have"
                f" {len(example.vector)}"
            )
        digest = digest_of([head])
        self.info = replace(
            clip.info,
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or f"{clip.info.id}+{head.stem}",
            revision=f"{clip.info.revision}+{digest}",
            files=f"{clip.info.files}+{digest}",
            vocabulary=frozenset(),  # the prompt is not used
            logit_scale=None,
        )

    def prepare(self, call: RewardCall) -> Prepared:
        """Preprocess the image; the prompt is not used."""
        return self._clip.prepare(ImageCall(call.image))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the image tower once, and the head once on the embeddings."""
        vectors = np.stack([each.vector for each in self._clip.score(batch)])
        return [Reward((rating,)) for rating in self._head(torch.from_numpy(vectors).double())[:, 0].tolist()]

    def example(self) -> RewardCall:
        return RewardCall(self._clip.example().image)


def from_settings(settings: AestheticSettings) -> Aesthetic:
    """Load the model of a table.  Raises `CheckpointError`."""
    head = head_file(settings.head)
    return Aesthetic(clip_from_settings(settings.model_copy(update={"id": ""})), head, id=settings.id)
