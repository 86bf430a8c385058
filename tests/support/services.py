"""A service around fake models, without HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from service.core.settings.tree import Settings
from service.wiring.bootstrap import Service, ServiceParts
from tests.support import instruments
from tests.support.fakes import FakeModel


@asynccontextmanager
async def running(tree: dict[str, Any], fakes: dict[str, FakeModel], **parts: Any) -> AsyncIterator[Service]:
    """The service of these settings and *parts*, with instruments that another one may have used."""
    own = ServiceParts(**{"instruments": instruments.lend, **parts})
    async with Service(Settings.model_validate(tree), fakes, parts=own) as service:
        yield service
    instruments.give_back(service.instruments)
