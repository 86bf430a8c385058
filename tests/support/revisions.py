"""Revisions of a VQA model, without checkpoints."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError
from service.serving.backends.local import WeightLoader
from tests.support.fakes import FakeModel, FakeVqa


class OtherVqa(FakeVqa):
    """Another revision, with other numbers."""

    def __init__(self, revision: str = "newer") -> None:
        super().__init__()
        self.info = replace(self.info, revision=revision)

    def answer(self, call: LikelihoodCall) -> Any:
        return super().answer(LikelihoodCall(call.image, f"{call.question} Really?"))


@pytest.fixture
def checkpoints() -> dict[str, Callable[[], FakeModel]]:
    """What loads each revision; the model has none in the settings."""
    return {"": FakeVqa}


@pytest.fixture
def parts(checkpoints: dict[str, Callable[[], FakeModel]]) -> dict[str, Any]:
    """What loads the checkpoints of a service."""

    def check(name: str, table: Any, given_back: Any = None) -> None:
        if table.revision not in checkpoints:
            raise CheckpointError(f"models.{name}: no revision {table.revision}")

    def load(name: str, table: Any) -> FakeModel:
        check(name, table)
        return checkpoints[table.revision]()

    return {"weights": WeightLoader(check=check, load=load)}
