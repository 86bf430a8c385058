"""The training loop of all demo models: seeded and resumable, with batches made ahead by another process."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SAVE_EVERY = 120  # seconds
REPORT_EVERY = 50  # steps


class Batches(IterableDataset[Any]):
    """A dataset of fresh scenes for every step, each seeded by its step, so that training can be resumed."""

    def __init__(self, make: Callable[[int], Any], first: int) -> None:
        self._make, self._first = make, first

    def __iter__(self) -> Iterator[Any]:
        return (self._make(step) for step in itertools.count(self._first))


def ahead(make: Callable[[int], Any], first: int) -> Iterator[Any]:
    """Yield batches made by another process during training."""
    return iter(DataLoader(Batches(make, first), batch_size=None, num_workers=1, prefetch_factor=4))


class Stage(NamedTuple):
    """A number of steps, the learning rate, and the number of last steps in which it decays to zero."""

    steps: int
    rate: float
    decay: int


class Loop:
    """
    A stage's steps of AdamW: warm-up, a constant rate, then a decay to zero over the last steps.

    State is saved every two minutes under *path*; a call with the same path resumes.
    """

    def __init__(
        self,
        student: nn.Module,
        path: Path,
        stage: Stage,
        *,
        warmup: int = 100,
        say: Callable[[str], None] = print,
    ) -> None:
        self._student, self._path, self._steps, self._say = student, path, stage.steps, say
        self.optimizer = torch.optim.AdamW(
            student.parameters(), stage.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer,
            lambda step: min(1.0, (step + 1) / warmup, max(0.0, (stage.steps - step) / stage.decay)),
        )
        self.step = 0
        self._sums: dict[str, tuple[float, int]] = {}
        if path.exists():
            self._load()

    def _load(self) -> None:
        state = torch.load(self._path, weights_only=True)
        self._student.load_state_dict(state["student"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self._schedule.last_epoch = self.step
        self._say(f"{self._path.stem}: resuming at step {self.step}")

    def save(self) -> None:
        """Write the state to a temporary file, then replace the old one."""
        state = {
            "student": self._student.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        torch.save(state, fresh)
        fresh.replace(self._path)

    def steps(self) -> Iterator[int]:
        """Yield the numbers of the remaining steps; save and report periodically."""
        began, first, saved = time.monotonic(), self.step, time.monotonic()
        while self.step < self._steps:
            yield self.step
            self.step += 1
            now = time.monotonic()
            if self.step % REPORT_EVERY == 0 or self.step == self._steps:
                pace = (now - began) / (self.step - first)
                self._report(pace)
            if now - saved > SAVE_EVERY:
                self.save()
                saved = now
        self.save()

    def minimise(self, losses: dict[str, torch.Tensor]) -> None:
        """Do one optimiser step on the sum of *losses*."""
        self.optimizer.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._student.parameters(), 1.0)
        self.optimizer.step()
        self._schedule.step()
        for name, loss in losses.items():
            self.note(name, loss.item())

    def note(self, name: str, value: float, weight: int = 1) -> None:
        """Add to a mean that the next report shows."""
        total, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = (total + value * weight, count + weight)

    def _report(self, pace: float) -> None:
        left = (self._steps - self.step) * pace / 60
        means = " ".join(f"{name} {t / n:.3f}" for name, (t, n) in self._sums.items() if n)
        self._say(
            f"{self._path.stem} {self.step}/{self._steps} {pace:.2f} s/step {left:.0f} min left: {means}"
        )
        self._sums.clear()
