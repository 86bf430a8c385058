"""
CLIP-FlanT5: the VQA model of VQAScore (Lin et al. 2024, "Evaluating Text-to-Visual Generation with
Image-to-Text Generation", section 3 and appendix D).

    pixels -> CLIP vision tower, layer -2, no CLS -> MLP projector -> T5 encoder -> T5 decoder

Reference implementation: t2v_metrics 3.0, `CLIPT5Model.forward`.  Its constants and its order of steps are
kept exactly, since published scores depend on them.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch

from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES
from models.core.calls import LikelihoodCall, VqaCall
from models.core.contract import QUESTION, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import CallResult
from models.families.batches import FeatureCache, Size, alike
from models.families.clip_flant5 import FAMILY, ClipFlanT5Settings
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.layout import FILES, read_layout
from models.families.clip_flant5.tensors import NetworkTensors
from models.families.clip_flant5.tokens import (
    EOS,
    AnswerEncoder,
    AnswerQuery,
    SplitText,
    outcomes_of,
)
from models.families.inputs import upload
from models.images.pixels import Preprocessor

log = logging.getLogger("scoregate.models")


class ClipFlanT5:
    """
    A loaded CLIP-FlanT5.

    Args:
        directory: a checkpoint in the published layout; `vision_tower/` in it may hold another tower's
            `config.json` and `preprocessor_config.json`.
        dtype: "float32", or "bfloat16" for weights and matrix products.
        compile: run the network's blocks through `torch.compile`.
        graph_rows: most rows of a batch that runs as a CUDA graph.
        features_mb: memory for cached image features, in MiB on the device.

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights don't fit the configuration.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
        compile: bool = False,
        graph_rows: int = 0,
        features_mb: int = 0,
    ) -> None:
        layout = read_layout(directory)
        self.tokenizer, self.pixels = layout.tokenizer, layout.pixels
        tensors = NetworkTensors(directory, layout)
        self.forward = Forward(
            tensors,
            device=torch.device(device),
            dtype=DTYPES[dtype],
            compile=compile,
            graph_rows=graph_rows,
        )
        self._scorer = Scorer(self.forward, FeatureCache(features_mb * 2**20), self.pixels)
        if compile:
            self._compile(layout.vision["image_size"], directory.name, device)
        self._patches = (layout.vision["image_size"] // layout.vision["patch_size"]) ** 2
        self._answers = AnswerEncoder(self.tokenizer)
        self.info = info_of(FAMILY, directory, FILES, dtype, device, id, revision, reentrant=True)

    def _compile(self, side: int, name: str, device: str) -> None:
        """Compile before the first batch, and log the time.  Raises `CheckpointError`."""
        began = perf_counter()
        try:
            self.forward.compile(side)
        except Exception as exc:  # there may be no compiler, for example
            reason = str(exc).partition("\n")[0]
            raise CheckpointError(f"compile = true: torch.compile failed: {reason}") from exc
        log.info("%s: %s: torch.compile took %.1f s", name, device, perf_counter() - began)

    def prepare(self, call: VqaCall) -> Prepared:
        """
        Resize the image and tokenise the texts; the cost is the encoder's and the answers' length.

        Raises:
            ModelError: an answer is empty.
            ImageError: the image cannot be decoded.
        """
        before, after = self.tokenizer.around_image(call.question)
        query = self._answers.encode(call, truncated=after[-1] != EOS, unknown=self._answers.unknown(call))
        pixels = call.image.once(self.pixels, self.pixels.resized)
        pair = ImageQuestion(call.image.digest, pixels, (tuple(before), tuple(after)), query)
        cost = len(before) + self._patches + len(after) + query.tokens
        return Prepared(cost, pair)

    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """Run the vision tower once per distinct image, the encoder once per distinct (image, question)."""
        return self._scorer.score(batch)

    def example(self) -> LikelihoodCall:
        return LikelihoodCall(grey(336, 336), QUESTION.replace("{}", "a red circle"))


def from_settings(settings: ClipFlanT5Settings) -> ClipFlanT5:
    """Load the CLIP-FlanT5 of a table.  Raises `CheckpointError`."""
    return ClipFlanT5(
        **model_arguments(settings),
        compile=settings.compile,
        graph_rows=settings.graph_rows,
        features_mb=settings.features_mb,
    )


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """
    One image and one question about it, ready for the device, with the answers.

    Attributes:
        pixels: resized, not yet normalised.
    """

    digest: str
    pixels: torch.Tensor
    text: tuple[tuple[int, ...], tuple[int, ...]]
    query: AnswerQuery


@dataclass(frozen=True, slots=True)
class DistinctQuestion:
    """A distinct question about an image, and the answers for each of its pairs, by index in the batch."""

    digest: str
    text: SplitText
    pairs: dict[int, AnswerQuery]

    @property
    def answers(self) -> list[tuple[int, ...]]:
        """Token ids of all answers."""
        return [answer for query in self.pairs.values() for answer in query.answers]

    def size(self, patches: int) -> Size:
        """Return its size in a batch, with an image of *patches*."""
        answers = self.answers
        return Size(sum(map(len, self.text)) + patches, len(answers), max(map(len, answers)))


class Scorer:
    """
    Scores batches by the *forward* pass of a network, with a cache of the *features* of images.

    Args:
        pixels: normalises resized images.
    """

    def __init__(self, forward: Forward, features: FeatureCache, pixels: Preprocessor) -> None:
        self._forward, self._features, self._pixels = forward, features, pixels

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """Run the vision tower once per distinct image, the encoder once per distinct (image, question)."""
        pairs: list[ImageQuestion] = [prepared.data for prepared in batch]
        features = self._features.of({pair.digest: pair.pixels for pair in pairs}, self._see)
        questions: dict[tuple[str, SplitText], DistinctQuestion] = {}
        for number, pair in enumerate(pairs):
            question = DistinctQuestion(pair.digest, pair.text, {})
            questions.setdefault((pair.digest, pair.text), question).pairs[number] = pair.query

        every = list(questions.values())
        outcomes: dict[int, CallResult | ModelError] = {}
        for group in alike([question.size(len(features[question.digest])) for question in every]):
            outcomes |= self._answered([every[number] for number in group], features)
        return [outcomes[number] for number in range(len(pairs))]

    def _see(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the features of resized images."""
        pixels = upload(images, self._forward.device)
        return self._forward.features(self._pixels.normalised(pixels))

    def _answered(
        self, group: Sequence[DistinctQuestion], features: Mapping[str, torch.Tensor]
    ) -> dict[int, CallResult | ModelError]:
        """Return the results of the pairs of *group*, computed in one pass."""
        seen = torch.stack([features[question.digest] for question in group])
        states, padding = self._forward.encode(seen, [question.text for question in group])
        logits = self._forward.logits(states, padding, [question.answers for question in group])
        queries = {number: query for question in group for number, query in question.pairs.items()}
        return dict(zip(queries, outcomes_of(logits, list(queries.values())), strict=True))
