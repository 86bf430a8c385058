"""What the tests that all local models share read of one of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from models.core.calls import Call
from models.core.family import Plan
from models.core.outcomes import (
    CallResult,
    Choices,
    Detections,
    Embedding,
    Entailment,
    FirstToken,
    Likelihood,
    Reward,
    Text,
)
from models.families.registry import families

ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """
    A dry run of a GPU.

    Attributes:
        dtype: of the weights.
        make: writes a checkpoint for it; None for the small one.
        settings: of its table, besides those of the kind.
        calls: how many there are.
    """

    dtype: str = "bfloat16"
    make: Callable[[Path], Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 12

    @property
    def seen(self) -> Sequence[Any]:
        """What stand-ins have seen after a batch."""
        return ()

    def stand_ins(self, model: Any, patch: Any) -> Sequence[Any]:
        """Replace what reads numbers, which a dry run does not have; return what is seen by it later."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """
    A local model.

    Attributes:
        family: by its name.
        make: writes a small checkpoint.
        settings: of its table, besides the checkpoint's directory.
        calls: of one batch.
        every: how many of them stand for one, where each takes long.
        result: of the model's own example.
        reference: for a checkpoint, the numbers of a call by other code; None for a call that it cannot read.
        within: how near numbers are to those of the reference, or of another batch.
        relative: how near they are in relation to themselves, which is enough, too.
        near: how near they are in half precision, by its name.
        rounded: a part of the model whose weights are in half precision then.
        exact: parts whose weights are not.
        last: the numbers of a model that are nearest to its outputs.
        parts: of a model, to be left on the CPU.
        gpu: for a dry run.
    """

    family: str
    make: Callable[[Path], Any]
    settings: Callable[[Path], Mapping[str, Any]] = lambda directory: {}
    calls: Sequence[Call]
    every: int = 1
    result: type[CallResult]
    reference: Callable[[Path], Callable[[Any], Sequence[float] | None]] | None = None
    within: float = 1e-5
    relative: float = 0
    near: Mapping[str, float] = field(default_factory=dict)
    rounded: Callable[[Any], torch.nn.Module]
    exact: Callable[[Any], Iterable[torch.nn.Module]] = lambda model: ()
    last: Callable[[Any], torch.Tensor] | None = None
    parts: Callable[[Any], Iterable[torch.nn.Module]] | None = None
    gpu: Gpu = Gpu()

    def some(self, each: Sequence[Any]) -> Sequence[Any]:
        """Return some of the calls, or of what belongs to them."""
        return each[:: self.every]

    def table(self, directory: Path | str, **more: Any) -> Any:
        """Return the settings of a model's table."""
        family, own = families()[self.family], self.settings(Path(directory))
        named = {"family": family.name, "role": family.role, "checkpoint": str(directory)}
        return family.settings(**{**named, **own, **more})

    def load(self, directory: Path | str, **more: Any) -> Any:
        """Load the model of a table, on the CPU in float32 if not said otherwise."""
        return families()[self.family].load("left", self.table(directory, **ON_THE_CPU | more))

    def approx(self, row: Sequence[float]) -> Any:
        """Return what numbers as near as those of other batches are equal to."""
        return pytest.approx(row, rel=self.relative, abs=self.within)

    def plan(self, directory: Path | str) -> Plan:
        """Return the plan of a table."""
        return families()[self.family].plan("left", self.table(directory))


def outcomes(model: Any, *calls: Call) -> list[Any]:
    """Return the outcomes of calls in one batch."""
    return model.score([model.prepare(call) for call in calls])


def numbers(found: Any) -> list[float]:
    """Return the numbers of a result, of boxes the scores alone."""
    match found:
        case Likelihood():
            return [*found.log_probs, found.log_p_yes, found.log_p_no]
        case Choices():
            return [number for tokens in found.log_probs for number in tokens]
        case FirstToken():
            return [*found.log_probs]
        case Reward():
            return [*found.outputs]
        case Entailment():
            return [found.probability]
        case Embedding():
            return found.vector.tolist()
        case Detections():
            return [each.score for each in found.found]
        case Text():
            return []
    raise AssertionError(f"no number: {found!r}")


def words(found: Any) -> tuple[Any, ...]:
    """Return what a result has besides its numbers."""
    labels = [each.label for each in getattr(found, "found", ())]
    return type(found), labels, *(getattr(found, name, None) for name in ("text", "truncated", "unknown"))


def numbers_in(directory: Path) -> int:
    """Return how many numbers the weights in a directory have."""
    files = [*directory.rglob("*.safetensors"), *directory.rglob("*.pt*"), *directory.rglob("*.bin")]
    count = 0
    for path in files:
        held = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
        count += sum(tensor.numel() for tensor in held.get("state_dict", held).values())
    return count
