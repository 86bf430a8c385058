"""What CLIP-FlanT5 does with a batch on its device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from models.core.contract import ModelError, Prepared
from models.core.outcomes import CallResult
from models.families.clip_flant5.answers import AnswerQuery, outcomes_of
from models.families.clip_flant5.features import FeatureCache
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.groups import Size, alike
from models.families.clip_flant5.tokenizer import Text


@dataclass(frozen=True, slots=True)
class Pair:
    """One image and one question about it, ready for the device, with the answers asked for."""

    digest: str
    pixels: torch.Tensor
    text: tuple[tuple[int, ...], tuple[int, ...]]
    asked: AnswerQuery


@dataclass(frozen=True, slots=True)
class Question:
    """A distinct question about an image, and the *pairs* that ask it, by their numbers in the batch."""

    digest: str
    text: Text
    pairs: dict[int, AnswerQuery]

    @property
    def answers(self) -> list[tuple[int, ...]]:
        """Token ids of all its answers."""
        return [answer for asked in self.pairs.values() for answer in asked.answers]

    def size(self, patches: int) -> Size:
        """What it takes of a batch, with an image of so many *patches*."""
        answers = self.answers
        return Size(sum(map(len, self.text)) + patches, len(answers), max(map(len, answers)))


class Scorer:
    """Scores batches by a network's *forward* pass, and keeps the features of the images *seen*."""

    def __init__(self, forward: Forward, seen: FeatureCache) -> None:
        self._forward, self._seen = forward, seen

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """One vision pass per distinct image, one row of the encoder per distinct (image, question)."""
        pairs: list[Pair] = [prepared.data for prepared in batch]
        features = self._seen.of({pair.digest: pair.pixels for pair in pairs}, self._forward.features)
        questions: dict[tuple[str, Text], Question] = {}
        for number, pair in enumerate(pairs):
            question = Question(pair.digest, pair.text, {})
            questions.setdefault((pair.digest, pair.text), question).pairs[number] = pair.asked

        every = list(questions.values())
        outcomes: dict[int, CallResult | ModelError] = {}
        for group in alike([question.size(len(features[question.digest])) for question in every]):
            outcomes |= self._answered([every[number] for number in group], features)
        return [outcomes[number] for number in range(len(pairs))]

    def _answered(
        self, group: Sequence[Question], features: Mapping[str, torch.Tensor]
    ) -> dict[int, CallResult | ModelError]:
        """The outcomes of the pairs that ask the questions of *group*, in one pass."""
        seen = torch.stack([features[question.digest] for question in group])
        states, padding = self._forward.encode(seen, [question.text for question in group])
        logits = self._forward.logits(states, padding, [question.answers for question in group])
        asked = {number: one for question in group for number, one in question.pairs.items()}
        return dict(zip(asked, outcomes_of(logits, list(asked.values())), strict=True))
