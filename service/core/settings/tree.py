"""The root of the settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from models.core.settings import ModelSettings, PlacedSettings, Section
from models.families.registry import families
from service.core.settings.dialects import Dialects
from service.core.settings.scoring import (
    ChecklistSettings,
    DecisionSettings,
    JudgeSettings,
    PolicyName,
    PolicySettings,
    QuestionSettings,
)
from service.core.settings.sections import (
    CacheSettings,
    Images,
    QueueSettings,
    RuntimeSettings,
    Server,
    Telemetry,
)


def by_family(table: Any) -> Any:
    """Validate a table under `models` as the settings of its family.  Raises `ValidationError`."""
    if not isinstance(table, dict) or "family" not in table:
        return table
    given, role = str(table["family"]), table.get("role")
    family = families().get(given)
    if family is None:
        raise wrong("family", f"there is no family {given!r}; there are {', '.join(families())}")
    if foreign := sorted(table.keys() - family.settings.model_fields.keys()):
        raise wrong(foreign[0], f"the family {given} has no such setting")
    if family.role and role != family.role:
        raise wrong("role", f"the family {given} serves the role {family.role!r}, not {role!r}")
    return family.settings.model_validate(table)


def wrong(setting: str, detail: str) -> ValidationError:
    """Return the error for one setting of a model's table."""
    error = PydanticCustomError("wrong_setting", detail)
    return ValidationError.from_exception_data("models", [{"type": error, "loc": (setting,), "input": None}])


ModelTable = Annotated[SerializeAsAny[ModelSettings], BeforeValidator(by_family)]


def not_zero(number: float) -> float:
    """Refuse 0: such a weight would have no effect, and no score can be divided by it."""
    if not number:
        raise ValueError("must not be 0")
    return number


Factor = Annotated[float, Field(allow_inf_nan=False), AfterValidator(not_zero)]


class PartSettings(Section):
    """
    The parts of a composite: a weighted sum of metrics, served like a metric under NAME.

    NAME has lower case letters, digits and `_`, and is no metric's name.

    ```toml
    [models.vqa]
    family = "clip_flant5"
    checkpoint = "/srv/models/clip-flant5-xl"

    [models.clip]
    family = "open_clip"
    checkpoint = "demo:clip"

    [composites.reward]
    vqascore = { weight = 0.5 }
    clipscore = { weight = 0.2, scale = "hessel", divide_by = 2.5 }
    judge = { weight = 0.3, rubric = "aesthetics", subtract = 1, divide_by = 4 }
    ```

    The score is the sum of `weight` · (score - `subtract`) / `divide_by`. If a part has no score, the
    composite has none; its error names the part.

    * `videoalign` and its outputs, which score all frames together, are combined only with each other.
    * A part like `dsg` needs a question LLM or a `question_set` in the profile. A composite cannot be a
      part.
    * `direction` is "lower is better" if it is for all parts and no weight is negative. Otherwise give a
      part whose lower scores are better a negative weight.
    """

    model_config = ConfigDict(extra="allow")

    weight: Factor = Field(description="The weight of this part; may be negative.")
    subtract: float = Field(0, allow_inf_nan=False, description="Subtracted from the part's score first.")
    divide_by: Factor = Field(1, description="Divides the difference.")

    @property
    def options(self) -> dict[str, Any]:
        """Options of the metric, unchanged."""
        return dict(self.model_extra or {})


PLACING = ("replicas", "num_gpus", "num_cpus", "autoscaling")


def check_place(name: str, table: PlacedSettings, runtime: str) -> None:
    """Raise `ValueError` if a model's table sets something that its runtime does not support."""
    fields = PlacedSettings.model_fields
    given = [setting for setting in PLACING if getattr(table, setting) != fields[setting].default]
    device = str(getattr(table, "device", "cpu"))
    if runtime == "local" and given:
        raise ValueError(f'models.{name}.{given[0]}: needs kind = "ray" in [runtime]')
    if runtime == "ray" and getattr(table, "devices", None):
        raise ValueError(f"models.{name}.devices: under Ray each replica has one device; set replicas")
    if runtime == "ray" and ":" in device:
        raise ValueError(f'models.{name}.device: under Ray it is "cuda" or "cpu"; Ray chooses which GPU')
    if table.num_gpus and device == "cpu":
        raise ValueError(f'models.{name}.num_gpus: its device is "cpu"')


class Settings(Section):
    """
    The settings of a service.

    Attributes:
        models: a table for each model, by its configured name.
        metrics: for each metric that has a table, the model that serves each role.
        composites: the parts of each composite, by metric.
        policies: of decisions, by name.
    """

    server: Server = Server()
    runtime: RuntimeSettings = RuntimeSettings()
    images: Images = Images()
    models: dict[str, ModelTable]
    metrics: dict[str, dict[str, str]] = Field({})
    composites: dict[str, dict[str, PartSettings]] = Field({})
    policies: dict[PolicyName, PolicySettings] = Field({})
    judge: JudgeSettings = JudgeSettings()
    checklists: ChecklistSettings = ChecklistSettings()
    questions: QuestionSettings = QuestionSettings()
    queue: QueueSettings = QueueSettings()
    cache: CacheSettings = CacheSettings()
    decisions: DecisionSettings = DecisionSettings()
    telemetry: Telemetry = Telemetry()
    dialects: Dialects = Dialects()

    @model_validator(mode="before")
    @classmethod
    def _name_roles(cls, tree: Any) -> Any:
        """Set each model's role, by default the name of its table."""
        tables = tree.get("models") if isinstance(tree, dict) else None
        if not isinstance(tables, dict):
            return tree
        named = {
            name: {"role": name, **table} if isinstance(table, dict) else table
            for name, table in tables.items()
        }
        return {**tree, "models": named}

    @model_validator(mode="after")
    def _fits_the_runtime(self) -> Self:
        for name, table in self.models.items():
            if isinstance(table, PlacedSettings):
                check_place(name, table, self.runtime.kind)
        return self

    def is_required(self, name: str) -> bool:
        """Return True if the service is not ready without that model."""
        model = self.models[name]
        return families()[model.family].required if model.required is None else model.required

    @property
    def takes_rubrics(self) -> bool:
        """True if requests may bring rubrics of their own."""
        return self.judge.allow_inline

    @property
    def rubric_files(self) -> list[Path]:
        """The files of rubrics in the folders of the settings."""
        return toml_files(self.judge.rubrics)

    @property
    def checklist_files(self) -> list[Path]:
        """The files of checklists likewise."""
        return toml_files(self.checklists.folders)

    @property
    def prompts(self) -> Path:
        """The folder of instructions that were copied from models' releases."""
        return self.judge.prompts

    @property
    def demo_models(self) -> list[str]:
        """Names of the demo models, whose scores mean nothing for real images."""
        return [name for name, table in self.models.items() if table.is_demo]


def toml_files(folders: Iterable[Path]) -> list[Path]:
    """Return the TOML files of folders, by name in each.  Raises `ValueError` if a folder is not there."""
    found = list[Path]()
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder}: there is no such folder")
        found += (file for file in sorted(folder.glob("*.toml")) if file.is_file())
    return found
