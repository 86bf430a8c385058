"""
An NLI model: how likely a hypothesis is to follow from a premise.

Two kinds of checkpoints of transformers do: a classifier of pairs with a label "entailment", and a T5 of
TRUE's kind.  Padding is masked, so a pair's probability does not depend on its company beyond rounding.
"""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import torch

from models.checkpoints.files import CONFIG, PIECES, TOKENIZER, TOKENIZER_CONFIG
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES
from models.core.calls import EntailmentCall
from models.core.contract import ModelError, Prepared
from models.core.outcomes import Entailment
from models.core.settings import LocalSettings
from models.families.nli import FAMILY
from models.families.nli.classifier import Classifier
from models.families.nli.loading import kind_of
from models.families.nli.text import Text
from models.families.nli.true import TrueNli

FILES = (CONFIG, TOKENIZER, TOKENIZER_CONFIG, PIECES)
KINDS: dict[str, type[Classifier] | type[TrueNli]] = {"classifier": Classifier, "true": TrueNli}


class Nli:
    """
    A loaded NLI model.

    Args:
        directory: a checkpoint as transformers saves it, weights in safetensors.
        dtype: "float32" or "bfloat16".
        device: where PyTorch puts it: "cpu", "cuda:0".
        id, revision: what scores are labelled with; by default the directory's name and a digest.

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._network = KINDS[kind_of(directory)](directory, DTYPES[dtype], device)
        self.info = info_of(FAMILY, directory, FILES, dtype=dtype, device=device, id=id, revision=revision)

    def prepare(self, call: EntailmentCall) -> Prepared:
        """Token ids of the pair; the cost counts them."""
        text = self._network.encode(call.premise, call.hypothesis)
        return Prepared(len(text.ids), text)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Entailment | ModelError]:
        """One pass over all pairs."""
        texts: list[Text] = [prepared.data for prepared in batch]
        return [
            Entailment(probability, text.truncated)
            if isfinite(probability)
            else ModelError("the model's output is not finite")
            for text, probability in zip(texts, self._network.probabilities(texts), strict=True)
        ]

    def example(self) -> EntailmentCall:
        """A prompt and a question with its answer."""
        return EntailmentCall("a red circle left of a blue square", "What color is the circle? red")


def load(settings: LocalSettings) -> Nli:
    """The NLI model of a table.  Raises `CheckpointError`."""
    return Nli(**model_arguments(settings))
