"""Files of a checkpoint: their names in every supported layout, the weights, and configurations."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.core.contract import CheckpointError
from models.core.messages import in_short, listed


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in *path*.  Raises `CheckpointError` if it is missing or not an object."""
    value = read_any(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return value


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read the list of JSON objects in *path*.  Raises `CheckpointError` as `read_json`."""
    value = read_any(path)
    if not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
        raise CheckpointError(f"{path}: not a list of JSON objects")
    return value


def read_any(path: Path) -> Any:
    """Read the JSON in *path*.  Raises `CheckpointError`."""
    if not path.is_file():
        raise CheckpointError(f"{path}: missing")
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"{path}: {exc}") from exc


def check_model_type(path: Path, given: Mapping[str, Any], *implemented: str) -> str:
    """Return the `model_type` of a configuration.  Raises `CheckpointError` if it is not *implemented*."""
    found = given.get("model_type")
    if found not in implemented:
        raise CheckpointError(f"{path}: model_type is {found!r}, not {' or '.join(map(repr, implemented))}")
    return str(found)


def check_size(path: Path, given: Mapping[str, Any], name: str) -> None:
    """Raise `CheckpointError` unless the size *name* is a whole number above 0."""
    if type(given.get(name)) is not int or given[name] < 1:
        raise CheckpointError(f"{path}: {name} is {given.get(name)!r}, not a whole number above 0")


def check_fixed(path: Path, given: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Raise `CheckpointError` for a value other than the *fixed* one, the only one implemented."""
    for name, value in fixed.items():
        if name in given and given[name] != value:
            raise CheckpointError(f"{path}: {name} is {given[name]!r}; only {value!r} is implemented")


def built(path: Path, kind: type, given: Mapping[str, Any]) -> Any:
    """Build a configuration object of transformers, which checks the types of all values."""
    try:
        return kind(**given)
    except Exception as exc:  # transformers raises many kinds
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc


# --- configuration and words --------------------------------------------------------------------

CONFIG = "config.json"  # transformers and CLIP-FlanT5 have it
OPEN_CLIP_CONFIG = "open_clip_config.json"
PREPROCESSOR = "preprocessor_config.json"
PROCESSOR = "processor_config.json"  # all processors of a model, as newer versions of transformers save them
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
CLIP_VOCABULARY = "vocab.json"  # older checkpoints of CLIPs have it for a tokenizer
PIECES = "spiece.model"  # SentencePiece's
# Everything that transformers may build a tokenizer from.
TOKENIZER_FILES = (
    TOKENIZER,
    TOKENIZER_CONFIG,
    PIECES,
    CLIP_VOCABULARY,
    "merges.txt",
    "vocab.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
VISION_TOWER = "vision_tower"  # directory of another vision tower than the published CLIP-FlanT5s'
VOCABULARY = "vocabulary.txt"  # the only words that a small model was taught

# --- weights ------------------------------------------------------------------------------------

# Weights of transformers are whole, or sharded with an index; the first that exists is read.
TRANSFORMERS_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
INDEX_SUFFIX = ".index.json"  # added to the name of the whole file

# Weights in open_clip's own layout stand in the order in which open_clip searches them.
OPEN_CLIP_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.pth",
    "model.pth",
)
OPEN_CLIP_SUFFIXES = (".safetensors", ".bin", ".pth")  # if none of these exists, the only such file

# --- files to download from a hub: data, never code ----------------------------------------------

FETCHED_FIRST = (CONFIG, OPEN_CLIP_CONFIG)  # they show the commit
FETCHED_WEIGHTS = ("*.safetensors", "*pytorch_model*.bin")
FETCHED_FILES = ("*.json", *FETCHED_WEIGHTS, "*.model")

# The revision of a CLIP's directory is a digest of these.
CLIP_DATA_SUFFIXES = (".json", ".safetensors", ".bin", ".pt", ".pth", ".txt", ".model")


def weight_files(directory: Path) -> list[Path]:
    """
    Return the files with the weights as transformers saves them, sharded or not; safetensors come first.

    Raises:
        CheckpointError: there is no such file, or one that the index names is missing.
    """
    for name in TRANSFORMERS_WEIGHTS:
        if (directory / name).is_file():
            return [directory / name]
        index = directory / f"{name}{INDEX_SUFFIX}"
        if index.is_file():
            return shards(index)
    raise CheckpointError(f"{directory}: no weights found (looked for {', '.join(TRANSFORMERS_WEIGHTS)})")


def first_weights(directory: Path, names: Sequence[str]) -> Path:
    """Return the first of *names* that is a file.  Raises `CheckpointError` if none is."""
    for name in names:
        if (directory / name).is_file():
            return directory / name
    raise CheckpointError(f"{directory}: no weights found (looked for {', '.join(names)})")


def model_type(directory: Path, *implemented: str) -> str:
    """Return the `model_type` of a checkpoint.  Raises `CheckpointError` if it is not *implemented*."""
    return check_model_type(directory / CONFIG, read_json(directory / CONFIG), *implemented)


def safetensors_files(directory: Path, *model_types: str) -> list[Path]:
    """
    Return the weight files of a checkpoint of transformers.

    Raises:
        CheckpointError: a file is missing or not safetensors, or `model_type` is another one.
    """
    if model_types:
        model_type(directory, *model_types)
    else:
        read_json(directory / CONFIG)
    files = weight_files(directory)
    for path in files:
        if path.suffix != ".safetensors":
            raise CheckpointError(f"{path}: weights are read from safetensors only")
    return files


def shards(index: Path) -> list[Path]:
    """Return the files that an `….index.json` names.  Raises `CheckpointError` if one is missing."""
    placed = read_json(index).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(s, str) for s in placed.values()):
        raise CheckpointError(f"{index}: no weight_map of tensors to files")
    names = sorted(set(placed.values()))
    if any("/" in name or "\\" in name for name in names):
        raise CheckpointError(f"{index}: a shard lies outside the checkpoint")
    absent = [name for name in names if not (index.parent / name).is_file()]
    if absent:
        raise CheckpointError(f"{index}: {len(absent)} of {len(names)} shards missing: {listed(absent)}")
    return [index.parent / name for name in names]


def open_clip_weights(directory: Path) -> Path:
    """
    Return the file that open_clip would read the weights from.

    Raises:
        CheckpointError: there is no such file, or several are possible.
    """
    for name in OPEN_CLIP_WEIGHTS:
        if (directory / name).is_file():
            return directory / name
    others = [path for path in directory.iterdir() if path.suffix in OPEN_CLIP_SUFFIXES]
    if len(others) != 1:
        found = f"{len(others)} other files of weights" if others else "no weights"
        raise CheckpointError(f"{directory}: {found} found (looked for {', '.join(OPEN_CLIP_WEIGHTS)})")
    return others[0]
