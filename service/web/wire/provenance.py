"""Wire types of provenance: what scores were computed with."""

from collections.abc import Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from service.core.fields import Orient


class ServiceBuild(TypedDict):
    """The service's version, and the commit of its code if known."""

    version: str
    commit: NotRequired[str]


class UsedModel(TypedDict):
    """A model of a request; `hardware` is the name of its GPU."""

    recipe: str
    dtype: str
    device: str
    hardware: NotRequired[str]


class Preprocessing(TypedDict):
    """How pictures become pixels: the version of our own arithmetic, and the orientation by default."""

    arithmetic: int
    orient: Orient


class PartEntry(TypedDict):
    """One part of a composite, with the options that differ from their defaults."""

    weight: float
    subtract: float
    divide_by: float
    options: dict[str, Any]


class Provenance(TypedDict):
    """
    What the scores of a response were computed with.

    Attributes:
        models: by configured name, as `models` of the response.
        options: of each metric, defaults included.
        composites: the parts of each composite, as in `GET /models`; absent without one.
        libraries: versions of Python and of libraries.
    """

    service: ServiceBuild
    models: dict[str, UsedModel]
    options: dict[str, dict[str, Any]]
    composites: NotRequired[dict[str, dict[str, PartEntry]]]
    preprocessing: Preprocessing
    libraries: Mapping[str, str]
