"""Load every configured model, by its family."""

from models.core.family import Loaded
from models.core.settings import ModelSettings, RemoteSettings
from models.families.registry import families
from service.core.settings.environment import read_secret
from service.core.settings.tree import Settings
from service.serving.batcher.cores import compute_on_one_core


def load_models(settings: Settings) -> dict[str, Loaded]:
    """
    The models of this process, by configured name; a remote one is only made ready to ask its server.

    Those that Ray places are loaded where it places them.

    Raises:
        SettingsError: the secret that a table names is not set; found out before any weights are read.
        CheckpointError: a model cannot be loaded; the message names its table.
    """
    here = {name: table for name, table in settings.models.items() if not is_placed(settings, table)}
    for table in here.values():
        if variable := getattr(table, "api_key_env", ""):
            read_secret(variable)
    return {name: load_model(name, table) for name, table in here.items()}


def load_model(name: str, table: ModelSettings) -> Loaded:
    """One model.  Raises `CheckpointError`."""
    family = families()[table.family]
    family.imports(name)
    compute_on_one_core()  # from here on torch is there, where the model computes with it
    return family.load(name, table)


def is_placed(settings: Settings, table: ModelSettings) -> bool:
    """Whether Ray places the model of *table*."""
    return settings.runtime.kind == "ray" and not isinstance(table, RemoteSettings)
