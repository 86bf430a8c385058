"""
CLIP-FlanT5: the VQA model of VQAScore (Lin et al. 2024, "Evaluating Text-to-Visual Generation with
Image-to-Text Generation", section 3 and appendix D).

    pixels -> CLIP vision tower, layer -2, no CLS -> MLP projector -> T5 encoder -> T5 decoder

Reference implementation: t2v_metrics 3.0, `CLIPT5Model.forward`.  Its constants and its order of steps are
kept exactly, since published scores depend on them.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import torch

from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES
from models.core.calls import LikelihoodCall
from models.core.contract import QUESTION, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import CallResult
from models.families.clip_flant5 import FAMILY, ClipFlanT5Settings
from models.families.clip_flant5.answers import AnswerEncoder, AnswerQuery, VqaCall, outcomes_of
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.layout import EOS, FILES, SplitText, read_layout
from models.families.clip_flant5.network import load_network
from models.families.inputs import upload
from models.images.pixels import Preprocessor

log = logging.getLogger("scoregate.models")

MAX_PADDING_RATIO = 1.25  # tokens with padding for each token of a group

unbind_copy: Any = torch.unbind_copy  # wrongly typed: no return value


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
        network = load_network(directory, layout)
        self.forward = Forward(
            network,
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


class FeatureCache:
    """
    Rows of features by the image's digest, up to *max_bytes*; the least recently used are evicted.

    Thread-safe.  Two concurrent batches with a new image both compute it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rows: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def of(
        self, images: Mapping[str, torch.Tensor], see: Callable[[Sequence[torch.Tensor]], torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """
        Return the features of each image; those not cached are computed by *see* in one pass.

        Args:
            images: pixels (channels, size, size) by digest.
            see: pixels of n images to features (n, patches, width).
        """
        with self._lock:
            found = {digest: self._rows[digest] for digest in images if digest in self._rows}
            for digest in found:
                self._rows.move_to_end(digest)
        fresh = [digest for digest in images if digest not in found]
        if fresh:
            seen = see([images[digest] for digest in fresh])
            rows = unbind_copy(seen)  # a view would keep its whole batch in memory
            found |= dict(zip(fresh, rows, strict=True))
            with self._lock:
                self._keep({digest: found[digest] for digest in fresh})
        return found

    def forget(self) -> None:
        """Drop all rows."""
        with self._lock:
            self._rows.clear()
            self.bytes = 0

    def _keep(self, rows: Mapping[str, torch.Tensor]) -> None:
        for digest, row in rows.items():
            if row.nbytes <= self._max and digest not in self._rows:
                self._rows[digest] = row
                self.bytes += row.nbytes
        while self.bytes > self._max:
            self.bytes -= self._rows.popitem(last=False)[1].nbytes


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
class Size:
    """The size of one question: tokens with its image, number of answers, tokens of the longest."""

    length: int
    answers: int
    longest: int

    @property
    def tokens(self) -> int:
        """Tokens of the question and all its answers, padded to the longest."""
        return self.length + self.answers * self.longest


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


def alike(sizes: Sequence[Size]) -> list[list[int]]:
    """
    Group the indices of questions of similar size.

    A group is padded to its longest question.  Without groups one long question would pad its whole
    batch: one of 24 took the memory of 80.
    """
    groups: list[list[int]] = []
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number].tokens):
        longer = [*groups[-1], number] if groups else []
        if longer and padded([sizes[one] for one in longer]) <= MAX_PADDING_RATIO:
            groups[-1] = longer
        else:
            groups.append([number])
    return groups


def padded(group: Sequence[Size]) -> float:
    """Return the ratio of a group's tokens with padding to those without."""
    widest = Size(
        max(size.length for size in group),
        max(size.answers for size in group),
        max(size.longest for size in group),
    )
    return len(group) * widest.tokens / sum(size.tokens for size in group)
