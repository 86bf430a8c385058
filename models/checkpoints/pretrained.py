"""Networks, tokenizers and image processors of transformers, read from local files only."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from models.checkpoints.files import (
    CONFIG,
    PREPROCESSOR,
    PROCESSOR,
    built,
    check_model_type,
    read_json,
    safetensors_files,
)
from models.core.contract import CheckpointError
from models.core.messages import in_short, listed

EMBEDDINGS = "embed_tokens.weight"


def load_pretrained(
    kind: Any, directory: Path, dtype: torch.dtype, *model_types: str, exact: bool = False
) -> Any:
    """
    Load the network of a class of transformers with every weight.

    Args:
        exact: reject weights that the network has no place for, such as those of a head of another model.

    Raises:
        CheckpointError: it cannot be loaded, has another `model_type`, or weights are missing
            or of another shape, which transformers would replace by random numbers.
    """
    place = safetensors_files(directory, *model_types)[0]
    try:
        network, loaded = kind.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # otherwise the error names none of them
            output_loading_info=True,
        )
    except Exception as exc:  # a broken configuration or file fails in many ways
        raise CheckpointError(f"{place}: cannot be loaded: {in_short(exc)}") from exc
    absent = sorted({*loaded["missing_keys"], *(name for name, *_ in loaded["mismatched_keys"])})
    if absent:
        raise CheckpointError(f"{place}: weights are missing or of another shape: {', '.join(absent[:4])}")
    if exact and (odd := sorted(loaded["unexpected_keys"])):
        raise CheckpointError(f"{place}: not a checkpoint of {kind.__name__}, but with {listed(odd)}")
    return network


def load_state(
    kind: Any,
    directory: Path,
    tensors: Mapping[str, torch.Tensor],
    place: Path,
    dtype: torch.dtype,
    model_type: str,
    *,
    words: int,
) -> Any:
    """
    Build the network of a class of transformers by the configuration in *directory*, with given *tensors*.

    The vocabulary has the rows of the embeddings among them, whatever the configuration says.

    Args:
        place: file of the tensors, in errors.
        words: of the tokenizer.

    Raises:
        CheckpointError: the `model_type` is another one, or tensors are missing, unexpected or do not fit.
    """
    path = directory / CONFIG
    given = read_json(path)
    check_model_type(path, given, model_type)
    config = built(path, kind.config_class, given)
    [rows] = {len(each) for name, each in tensors.items() if name.endswith(EMBEDDINGS)} or {0}
    check_words(place, words, rows)
    config.text_config.vocab_size = rows
    try:
        network, loaded = kind.from_pretrained(
            None,
            config=config,
            state_dict=dict(tensors),
            dtype=dtype,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except Exception as exc:  # a configuration that describes no network fails in many ways
        raise CheckpointError(f"{path}: the network cannot be built: {in_short(exc)}") from exc
    odd = {
        "missing": sorted(loaded["missing_keys"]),
        "unexpected": sorted(loaded["unexpected_keys"]),
        "of another shape": sorted(name for name, *_ in loaded["mismatched_keys"]),
    }
    if wrong := "; ".join(f"{len(names)} {kind}: {listed(names)}" for kind, names in odd.items() if names):
        raise CheckpointError(f"{place}: the weights don't fit {path}: {wrong}")
    return network


def load_processor(kind: Any, directory: Path) -> Any:
    """Load the image processor of transformers in *directory*.  Raises `CheckpointError`."""
    whole = directory / PROCESSOR  # newer versions of transformers write it
    path = whole if whole.is_file() else directory / PREPROCESSOR
    read_json(path)
    try:
        return kind.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as exc:  # a broken file fails in many ways
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc


def load_tokenizer(directory: Path) -> Any:
    """Load the tokenizer of transformers in *directory*.  Raises `CheckpointError`."""
    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
        raise CheckpointError(f"{directory}: its tokenizer cannot be loaded: {in_short(exc)}") from exc


@dataclass(frozen=True, slots=True)
class Unknown:
    """
    The token that stands for everything that a tokenizer has no other one for.

    Attributes:
        id: of that token; None for a tokenizer without one, such as one of bytes.
        special: ids of tokens that are no part of a text, such as padding.
    """

    id: int | None
    special: frozenset[int] = frozenset()

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Return that of a tokenizer of transformers; one whose unknown token ends a text has none."""
        ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
        unknown = None if tokenizer.unk_token_id in ends else tokenizer.unk_token_id
        return cls(unknown, frozenset(tokenizer.all_special_ids))

    def share(self, ids: Iterable[int]) -> float:
        """Return the share of unknown tokens among those of a text; 0 without any."""
        if self.id is None:
            return 0.0
        counts = Counter(ids)
        known = sum(count for id, count in counts.items() if id != self.id and id not in self.special)
        return counts[self.id] / max(1, counts[self.id] + known)


def load_fast_tokenizer(directory: Path, rows: int) -> tuple[Tokenizer, int, Unknown]:
    """
    Load a thread-safe tokenizer, its `model_max_length` and its unknown token.

    Raises:
        CheckpointError: it cannot be loaded, or has more words than the embeddings have *rows*.
    """
    loaded = load_tokenizer(directory)
    if not loaded.is_fast:
        raise CheckpointError(f"{directory}: needs a fast tokenizer")
    tokenizer = thread_safe(loaded)
    check_words(directory, tokenizer.get_vocab_size(), rows)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a prompt is text
    return tokenizer, loaded.model_max_length, Unknown.of(loaded)


def check_words(place: Path, words: int, rows: int) -> None:
    """Raise `CheckpointError` for more words than rows: a word without one would end a GPU's process."""
    if words > rows:
        raise CheckpointError(f"{place}: {words} words, and the embeddings have {rows} rows")


def thread_safe(tokenizer: Any) -> Tokenizer:
    """Copy the backend of a fast tokenizer, whose own `encode` sets state and is not thread-safe."""
    copied = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copied.no_padding()
    copied.no_truncation()
    return copied
