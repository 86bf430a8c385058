"""
Read the settings: a TOML profile under the environment's overrides, checked against what there is.

Every value can be overridden by `SCOREGATE_` and its path joined by `__` in upper case, for example
`SCOREGATE_SERVER__PORT=9000` or `SCOREGATE_MODELS__VQA__CHECKPOINT=/path`.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from service.metrics.assignment import assign
from service.metrics.registry import metrics
from service.settings import SettingsError
from service.settings.environment import override
from service.settings.tree import Settings

DEMO_PROFILE = Path(__file__).parent / "profiles" / "demo.toml"


def load_settings(profile: Path | None, environ: Mapping[str, str] = os.environ) -> Settings:
    """
    The settings of *profile* (the demo profile where there is none) under *environ*'s overrides.

    Raises:
        SettingsError: a file that can't be read, an unknown setting, or a value out of its range.
        PluginError: another package's metric or family of models cannot be used.
    """
    path = profile or DEMO_PROFILE
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise SettingsError(f"{path}: {exc}") from exc
    override(tree, environ)
    try:
        settings = Settings.model_validate(tree)
        assign(metrics(), settings)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {place or 'settings'}: {first['msg']}") from exc
    except SettingsError as exc:
        raise SettingsError(f"{path}: {exc}") from exc
    return settings
