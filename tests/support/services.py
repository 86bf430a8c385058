"""A service around fake models, without HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.core.settings.tree import Settings
from service.wiring import bootstrap
from tests.support import instruments
from tests.support.fakes import FakeModel


@asynccontextmanager
async def running(tree: dict[str, Any], fakes: dict[str, FakeModel]) -> AsyncIterator[bootstrap.Service]:
    """The service of these settings, with instruments that another one may have used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "Instruments", instruments.lend)
        service = bootstrap.Service(Settings.model_validate(tree), fakes)
    async with service:
        yield service
    instruments.give_back(service.instruments)
