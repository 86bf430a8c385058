"""Load every configured model, by its family."""

from models.family import Loaded
from models.registry import families
from service.serving.batcher.cores import compute_on_one_core
from service.settings.environment import read_secret
from service.settings.tree import Settings


def load_models(settings: Settings) -> dict[str, Loaded]:
    """
    All models, by configured name; a remote one is only made ready to ask its server.

    Raises:
        SettingsError: the secret that a table names is not set; found out before any weights are read.
        CheckpointError: a model cannot be loaded; the message names its table.
    """
    for table in settings.models.values():
        if variable := getattr(table, "api_key_env", ""):
            read_secret(variable)
    compute_on_one_core()
    return {name: families()[table.family].load(name, table) for name, table in settings.models.items()}
