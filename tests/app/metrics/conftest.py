"""Fixtures for metrics around fake models."""

import pytest

from tests.support.fake_objects import Detector, FakeColours


@pytest.fixture
def detector(fakes):
    """The detector of the app, beside a CLIP that names colours."""
    fakes["detector"], fakes["clip"] = Detector(), FakeColours()
    return fakes["detector"]
