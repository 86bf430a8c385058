"""
An NLI model: how likely a hypothesis is to follow from a premise.

Two kinds of checkpoints of transformers are supported: a classifier of pairs with a label "entailment", and a
T5 of TRUE's kind.  Padding is masked, so a pair's probability does not depend on its batch beyond rounding.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, TOKENIZER_FILES
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES
from models.core.calls import EntailmentCall
from models.core.contract import ModelError, Prepared
from models.core.outcomes import Entailment
from models.core.settings import LocalSettings
from models.families.nli import FAMILY
from models.families.nli.classifier import Classifier
from models.families.nli.text import Text
from models.families.nli.true import TrueNli

FILES = (CONFIG, *TOKENIZER_FILES)


class Nli:
    """A loaded NLI model.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        writes = "T5ForConditionalGeneration" in (read_json(directory / CONFIG).get("architectures") or [])
        self._network = (TrueNli if writes else Classifier)(directory, DTYPES[dtype], device)
        self.info = info_of(FAMILY, directory, FILES, dtype, device, id, revision)

    def prepare(self, call: EntailmentCall) -> Prepared:
        """Tokenise the pair; the cost is its number of tokens."""
        text = self._network.encode(call.premise, call.hypothesis)
        return Prepared(len(text.ids), text)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Entailment | ModelError]:
        """Run all pairs in one pass."""
        texts: list[Text] = [prepared.data for prepared in batch]
        return [
            Entailment(probability, text.truncated, text.unknown).checked()
            for text, probability in zip(texts, self._network.probabilities(texts), strict=True)
        ]

    def example(self) -> EntailmentCall:
        return EntailmentCall("a red circle left of a blue square", "What color is the circle? red")


def load(settings: LocalSettings) -> Nli:
    """Load the NLI model of a table.  Raises `CheckpointError`."""
    return Nli(**model_arguments(settings))
