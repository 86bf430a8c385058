"""`configuration.md`: the tree of settings, with the settings of each family of models."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from docs.render.markdown import code, join, prose, table, value
from docs.render.schema import named, words
from models.core.settings import (
    NOT_IN_RECIPE,
    DeviceSettings,
    LocalSettings,
    ModelSettings,
    PlacedSettings,
    RemoteSettings,
    TunedSettings,
)
from models.families.registry import own
from service.core.settings.environment import PREFIX
from service.core.settings.scoring import PolicySettings, StyleSettings
from service.core.settings.tree import PartSettings, Settings
from service.web.keys import KeyTable

INTRO = """
# All settings

The tables of a profile, and the environment variable that overrides each setting ([how both are
read](../configuration.md)). The ending of a setting's name is its unit: `_s` seconds, `_ms` milliseconds,
`_mb` MiB, `_gb` GB. A variable's value that is a table or a list is JSON.
"""
MODELS = """
## models.NAME

Each model has a table, with a lower-case name of your choice, the settings of all models and those of its
[family](models.md). A setting of another family ends the start, and so does a model that cannot be loaded,
even if it is not `required`.
"""
METRICS = """
## metrics.METRIC

METRIC is the name of a [metric](metrics.md), and ROLE one of its roles. Without a table, a metric uses the
first model of each role. Metrics that are [a model of their own](metrics.md#all-metrics) need a table, and
other metrics do not use that model, unless it has the name of its role.

```toml
[models.large]
role = "vqa"
family = "clip_flant5"
checkpoint = "/srv/models/clip-flant5-xl"

[models.pickscore]
role = "clip"
family = "open_clip"
checkpoint = "yuvalkirstain/PickScore_v1"

[metrics]
vqascore = { model = "large" }
pickscore = { model = "pickscore" }
```
"""
ROLES = [
    ["`metrics.METRIC.ROLE`", "not set", "text", "The model that this metric uses in this role."],
    ["`metrics.METRIC.model`", "not set", "text", "Short form, for the model's own role."],
]
OPTION = [
    "`composites.NAME.METRIC.OPTION`",
    "the metric's",
    "anything",
    "An [option](metrics.md) of the metric, other than `frames` and `samples`.",
]
DEFAULTS = {"models.NAME.role": "the table's name"}  # which the tree fills in
HEADS = ("setting", "default", "value", "meaning", "variable")
RECIPE = """
## Settings outside of a model's recipe

A model's [recipe](../configuration.md#recipes) has all settings of its table except these:
"""

# The tables of settings that several families share; a family's own are below its name.
SHARED: dict[type[ModelSettings], str] = {
    PlacedSettings: "Under Ray",
    DeviceSettings: "Devices",
    LocalSettings: "Local models",
    TunedSettings: "Reward models with several heads",
    RemoteSettings: "Models behind an API",
}
# The sections in which operators choose names: the class of a table, below the path of its settings.
BY_NAME: Mapping[str, tuple[str, type[BaseModel]]] = {
    "composites": ("composites.NAME.METRIC", PartSettings),
    "policies": ("policies.NAME", PolicySettings),
    "questions": ("questions.styles.NAME", StyleSettings),
}


def page() -> str:
    """Return the page: a section for each table of a profile, in the order of the settings' tree."""
    keys = table(HEADS[:-1], (row[:-1] for row in rows_of(KeyTable, "NAME")))
    return join(
        INTRO, *sections(), RECIPE, code(*outside_recipes()), "## API keys", prose(KeyTable.__doc__), keys
    )


def sections() -> Iterator[str]:
    """Yield the headings and the tables."""
    for name, field in Settings.model_fields.items():
        if name == "models":
            yield from (MODELS, table(HEADS, rows_of(ModelSettings, "models.NAME")), *of_models())
        elif name == "metrics":
            yield from (METRICS, table(HEADS, ([*row, variable(row[0].strip("`"))] for row in ROLES)))
        else:
            place, kind = BY_NAME.get(name) or (name, section_in(field.annotation))
            assert kind is not None
            heading = "composites.NAME" if name == "composites" else place
            yield f"## {heading}"
            yield prose(kind.__doc__)
            rows = [*rows_of(kind, place), *([[*OPTION, ""]] if name == "composites" else [])]
            yield table(HEADS, rows)


def of_models() -> Iterator[str]:
    """Yield a section for the settings that several families share, and one for each family's own."""
    families = own().values()
    kinds = SHARED | {family.settings: family.name for family in families if family.settings not in SHARED}
    for kind, heading in kinds.items():
        users = [family.name for family in families if issubclass(family.settings, kind)]
        base = kind.__base__
        inherited = (
            {row[0] for row in rows_of(base, "models.NAME")}
            if base is not None and issubclass(base, BaseModel)
            else set()
        )
        rows = [row for row in rows_of(kind, "models.NAME") if row[0] not in inherited]
        yield f"### {heading}"
        yield f"For the families {code(*users)}." if kind in SHARED else ""
        yield prose(kind.__doc__)
        yield table(HEADS, rows)


def rows_of(kind: type[BaseModel], place: str) -> Iterator[list[str]]:
    """Yield a row for each setting of a section and the sections in it."""
    schemas = kind.model_json_schema()["properties"]
    for name, field in kind.model_fields.items():
        nested, path = section_in(field.annotation), f"{place}.{name}"
        if nested:
            yield from rows_of(nested, path)
            continue
        made: Any = field.default_factory
        default = made.__name__.replace("_", " ") if made else value(field.get_default())
        shown = DEFAULTS.get(path) or ("required" if field.is_required() else default)
        yield [code(path), shown, words(schemas[name], named), field.description or "", variable(path)]


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field has, itself or as one of several types."""
    found = (annotation, *get_args(annotation))
    return next((each for each in found if isinstance(each, type) and issubclass(each, BaseModel)), None)


def variable(path: str) -> str:
    """Return the environment variable of a setting."""
    return code(PREFIX + path.upper().replace(".", "__"))


def outside_recipes() -> list[str]:
    """Return the names of the settings that change no output of a model."""
    found = {
        name: None
        for family in own().values()
        for name, field in family.settings.model_fields.items()
        if NOT_IN_RECIPE in field.metadata
    }
    return [*found]
