"""A model on another server: its name there, its label, and what all its requests have."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict

from models.core.contract import ModelInfo, RemoteModel
from models.core.family import Family
from models.core.settings import RemoteSettings


class ServedArguments(TypedDict):
    """The arguments of every `ServedModel`."""

    model: str
    extra_body: Mapping[str, Any]
    id: str
    revision: str


def served_arguments(settings: RemoteSettings) -> ServedArguments:
    """Return the arguments of the model of a table."""
    return {
        "model": settings.model,
        "extra_body": settings.extra_body,
        "id": settings.id,
        "revision": settings.revision,
    }


class ServedModel(RemoteModel):
    """
    A model on another server.

    Args:
        model: its name on the server.
        extra_body: fields added to every request.
        id, revision: label of the scores; by default the name.
        facts: further fields of `ModelInfo`.

    Attributes:
        family: of the class.
    """

    family: ClassVar[Family]

    def __init__(
        self, model: str, *, extra_body: Mapping[str, Any], id: str = "", revision: str = "", **facts: Any
    ) -> None:
        self._fields = {**extra_body, "model": model}
        self.info = ModelInfo(
            self.family.role, self.family.name, id or model, revision, "", "remote", **facts
        )

    def body(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a request: *fields* after those of every request."""
        return {**self._fields, **fields}
