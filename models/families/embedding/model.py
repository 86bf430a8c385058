"""
Sentence embeddings (Reimers and Gurevych 2019, "Sentence-BERT", arXiv 1908.10084): the mean of a text's last
hidden states, at length 1.

Padding is masked, so an embedding does not depend on its batch beyond rounding.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F
from transformers import AutoModel

from models.checkpoints.files import CONFIG, TOKENIZER_FILES, read_json, read_objects
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.checkpoints.weights import DTYPES
from models.core.calls import TextCall
from models.core.contract import CheckpointError, Prepared
from models.core.outcomes import Embedding
from models.core.settings import LocalSettings
from models.families.embedding import FAMILY, MAX_TOKENS
from models.families.inputs import padded, positions

# The package sentence-transformers writes these files.
MODULES, POOLING = "modules.json", "1_Pooling/config.json"
MODULE_CLASSES = {"Transformer", "Pooling", "Normalize"}  # classes of modules
MEAN_POOLING = "pooling_mode_mean_tokens"


class SentenceTransformer:
    """A loaded model for sentences.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        check_modules(directory / MODULES)
        check_pooling(directory / POOLING)
        self._network = load_pretrained(AutoModel, directory, DTYPES[dtype]).to(device).eval()
        rows = self._network.get_input_embeddings().num_embeddings
        self._tokenizer, longest, self._unknown = load_fast_tokenizer(directory, rows)
        self._tokenizer.enable_truncation(min(MAX_TOKENS, longest, positions(self._network, MAX_TOKENS)))
        self._device, self._pad = device, self._network.config.pad_token_id or 0
        files = (CONFIG, MODULES, POOLING, *TOKENIZER_FILES)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision)

    def prepare(self, call: TextCall) -> Prepared:
        """Tokenise the text; the cost is its number of tokens."""
        encoded = self._tokenizer.encode(call.text)
        ids = tuple(encoded.ids)
        return Prepared(len(ids), (ids, bool(encoded.overflowing), self._unknown.share(ids)))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding]:
        """Run all texts in one pass."""
        texts = [prepared.data for prepared in batch]
        ids, mask = padded([ids for ids, *_ in texts], self._device, self._pad)
        states = self._network(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        sums = (states * mask[..., None]).sum(1)
        vectors = F.normalize(sums / mask.sum(1, keepdim=True), dim=1).cpu().numpy()
        return [
            Embedding(np.ascontiguousarray(vector), truncated=truncated, unknown=unknown)
            for vector, (_, truncated, unknown) in zip(vectors, texts, strict=True)
        ]

    def example(self) -> TextCall:
        return TextCall("a red circle left of a blue square")


def check_modules(path: Path) -> None:
    """Raise `CheckpointError` if the checkpoint has a module besides network, pooling and normalisation."""
    if not path.is_file():
        return
    kinds = {str(module.get("type")).rpartition(".")[2] for module in read_objects(path)}
    if others := kinds - MODULE_CLASSES:
        raise CheckpointError(f"{path}: modules of the kind {', '.join(sorted(others))} are not implemented")


def check_pooling(path: Path) -> None:
    """Raise `CheckpointError` if the checkpoint has another pooling than the mean."""
    if not path.is_file():
        return
    modes = {name for name, on in read_json(path).items() if name.startswith("pooling_mode_") and on is True}
    if modes != {MEAN_POOLING}:
        raise CheckpointError(
            f"{path}: only {MEAN_POOLING} is implemented, and the file has {', '.join(sorted(modes))}"
        )


def from_settings(settings: LocalSettings) -> SentenceTransformer:
    """Load the model of a table.  Raises `CheckpointError`."""
    return SentenceTransformer(**model_arguments(settings))
