"""The app that the documentation describes."""

import pytest

from service.core.settings.tree import Settings
from service.web.app import create_app
from service.web.edge import App
from service.wiring.bootstrap import Service
from tests.support.fakes import FakeVqa


@pytest.fixture(scope="package")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    """An app on a service that was never opened."""
    settings = {
        "models": {"vqa": {"family": "clip_flant5"}},
        "cache": {"questions": f"sqlite:///{tmp_path_factory.mktemp('app')}/q"},
    }
    return create_app(Service(Settings.model_validate(settings), {"vqa": FakeVqa()}))
