"""
LAION's aesthetic predictors (Schuhmann et al. 2022, "LAION-5B"): a CLIP embeds the image, and a head makes
one number of the embedding, from about 1 to 10.

Version 2 has five layers with nothing between them ("sac+logos+ava1-l14-linearMSE"), version 1 a single one.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import torch

from models.checkpoints.revision import digest_of
from models.core.calls import ImageCall, RewardCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.outcomes import Embedding, Reward
from models.families.aesthetic import FAMILY, AestheticSettings
from models.families.aesthetic.head import head_file, load_head
from models.families.clip.model import Clip
from models.families.clip.model import load as load_clip
from models.families.linear_head import width_of


class Aesthetic:
    """
    A CLIP with a head.  The head is small, and runs in float32 where the embeddings arrive: on the CPU.

    Args:
        clip: embeds the images.
        head: the file of the head.
        id: what scores are labelled with; by default the CLIP's and the head's names.

    Raises:
        CheckpointError: the head cannot be read, or takes embeddings of another width than the CLIP's.
    """

    def __init__(self, clip: Clip, head: Path, *, id: str = "") -> None:
        self._clip, self._head = clip, load_head(head)
        [example] = clip.score([clip.prepare(clip.example())])
        width = width_of(self._head)
        if isinstance(example, Embedding) and width != len(example.vector):
            raise CheckpointError(
                f"{head}: the head takes embeddings of {width} numbers, and those of {clip.info.id} have"
                f" {len(example.vector)}"
            )
        self.info = replace(
            clip.info,
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or f"{clip.info.id}+{head.stem}",
            revision=f"{clip.info.revision}+{digest_of([head])}",
            vocabulary=frozenset(),  # it reads no prompt
            logit_scale=None,
        )

    def prepare(self, call: RewardCall) -> Prepared:
        """The pixels; the prompt plays no part."""
        return self._clip.prepare(ImageCall(call.image))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """One pass of the image tower, and one of the head over the unit vectors."""
        found = self._clip.score(batch)
        vectors = [each.vector for each in found if isinstance(each, Embedding)]
        numbers = iter(self._numbers(np.stack(vectors)) if vectors else [])
        return [reward(next(numbers)) if isinstance(each, Embedding) else each for each in found]

    def _numbers(self, vectors: np.ndarray) -> list[float]:
        numbers: list[float] = self._head(torch.from_numpy(vectors))[:, 0].tolist()
        return numbers

    def example(self) -> RewardCall:
        """A grey square."""
        return RewardCall(self._clip.example().image)


def reward(value: float) -> Reward | ModelError:
    """The outcome of one image."""
    return Reward((value,)) if isfinite(value) else ModelError("the model's output is not finite")


def load(settings: AestheticSettings) -> Aesthetic:
    """The model of a table.  Raises `CheckpointError`."""
    head = head_file(settings.head)
    return Aesthetic(load_clip(settings.model_copy(update={"id": ""})), head, id=settings.id)
