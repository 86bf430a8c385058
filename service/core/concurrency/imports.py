"""Access to libraries that another thread may be importing."""

import sys
from types import ModuleType


def imported(name: str) -> ModuleType | None:
    """Return the module if it has been imported to its end, or else None."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module
