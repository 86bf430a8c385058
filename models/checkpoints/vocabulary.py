"""The words that a small model was taught."""

from pathlib import Path

from models.checkpoints.files import VOCABULARY


def read_vocabulary(directory: Path) -> frozenset[str]:
    """The only words that the model in *directory* knows; empty where it was taught any."""
    path = directory / VOCABULARY
    return frozenset(path.read_text("utf-8").split()) if path.is_file() else frozenset()
