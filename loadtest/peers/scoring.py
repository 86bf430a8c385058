"""The models that the peers serve: those of the service's demo profile, or a checkpoint on a GPU."""

import base64
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from math import exp
from pathlib import Path
from typing import Any

import torch

from models.checkpoints.locate import locate
from models.core.calls import ImageCall, LikelihoodCall, TextCall
from models.core.contract import Prepared
from models.families.clip.model import Clip
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image

MOST = 64  # calls in a batch of the device


class Scorer:
    """
    Scores texts against a picture.

    Args:
        role: "vqa" or "clip" for the demo model, float32 on the CPU; "vqa=DIRECTORY" for a CLIP-FlanT5 in
            bfloat16 on the GPU, if there is one.
    """

    def __init__(self, role: str) -> None:
        self._role, _, directory = role.partition("=")
        self._model: Any
        if self._role == "clip":
            self._model = Clip("demo:clip", dtype="float32", device="cpu")
        elif not directory:
            self._model = ClipFlanT5(locate("demo:clip_flant5").directory, dtype="float32", device="cpu")
        else:
            place = ("cuda", "bfloat16") if torch.cuda.is_available() else ("cpu", "float32")
            self._model = ClipFlanT5(Path(directory), device=place[0], dtype=place[1])

    def prepare(self, file: bytes, texts: Sequence[str]) -> list[Prepared]:
        """Decode one picture, and tokenise its texts.  Raises `ImageError`."""
        image = Image(file)
        if self._role == "vqa":
            return [self._model.prepare(LikelihoodCall(image, text)) for text in texts]
        return [self._model.prepare(call) for call in (ImageCall(image), *map(TextCall, texts))]

    def prepare_all(self, request: Mapping[str, Any]) -> list[list[Prepared]]:
        """Prepare every base64 picture of a JSON request with its texts.  Raises as `prepare` does."""
        files = map(base64.b64decode, request["images"])
        return [self.prepare(*pair) for pair in zip(files, request["texts"], strict=True)]

    def score(self, inputs: Sequence[Sequence[Prepared]]) -> list[list[float]]:
        """Return the scores of each picture's texts: VQAScore as in the released code, or the cosine."""
        calls = list(chain.from_iterable(inputs))
        batches = (calls[start : start + MOST] for start in range(0, len(calls), MOST))
        outcomes = chain.from_iterable(map(self._model.score, batches))
        return [self._scores(list(islice(outcomes, len(one)))) for one in inputs]

    def _scores(self, outcomes: Sequence[Any]) -> list[float]:
        if self._role == "vqa":
            return [exp(sum(outcome.log_probs) / 2) for outcome in outcomes]
        seen, *read = outcomes
        return [float(seen.vector @ text.vector) for text in read]
