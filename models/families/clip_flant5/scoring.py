"""The device part of CLIP-FlanT5: one batch to results."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch

from models.core.contract import ModelError, Prepared
from models.core.outcomes import CallResult
from models.families.clip_flant5.answers import AnswerQuery, outcomes_of
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.groups import Size, alike
from models.families.clip_flant5.layout import SplitText
from models.families.inputs import upload
from models.images.pixels import Preprocessor

unbind_copy: Any = torch.unbind_copy  # wrongly typed: no return value


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
