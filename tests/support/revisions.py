"""Revisions of a VQA model, without checkpoints."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError
from service.serving.backends import local
from tests.support.fakes import FakeModel, FakeVqa


class OtherVqa(FakeVqa):
    """Another revision, with other numbers."""

    def __init__(self, revision: str = "newer") -> None:
        super().__init__()
        self.info = replace(self.info, revision=revision)

    def answer(self, call: LikelihoodCall) -> Any:
        return super().answer(LikelihoodCall(call.image, f"{call.question} Really?"))


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], FakeModel]]:
    """What loads each revision; the model has none in the settings."""
    found: dict[str, Callable[[], FakeModel]] = {"": FakeVqa}

    def check(name: str, table: Any, given_back: Any = None) -> None:
        if table.revision not in found:
            raise CheckpointError(f"models.{name}: no revision {table.revision}")

    def load(name: str, table: Any) -> FakeModel:
        check(name, table)
        return found[table.revision]()

    monkeypatch.setattr(local, "check_loadable", check)
    monkeypatch.setattr(local, "load_model", load)
    return found
