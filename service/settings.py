"""
All settings: one frozen tree, read once from a TOML profile and the environment.

Every value can be overridden by `SCOREGATE_` + its path joined by `__` in upper case, for example
`SCOREGATE_SERVER__PORT=9000` or `SCOREGATE_MODELS__VQA__CHECKPOINT=/path`.  This is the only module
that reads either.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from models.base import QUESTION
from service import redis_url

PREFIX = "SCOREGATE_"
DEMO_PROFILE = Path(__file__).parent / "profiles" / "demo.toml"


LONGEST_TIMEOUT_MS = 600_000  # of a request

BYTES_A_PIXEL = 2 * 4  # while both a picture as it came and its RGB form are held

# What each family can be, and which roles a metric may be given a model for.
FAMILIES = {
    "open_clip": "clip",
    "clip_flant5": "vqa",
    "openai_vlm": "vqa",
    "transformers": "questions",
    "openai": "questions",
}
REMOTE = ("openai", "openai_vlm")
SERVES = {
    "vqascore": ("vqa",),
    "clipscore": ("clip",),
    "dsg": ("vqa", "questions"),
    "pickscore": ("clip",),
    "hpsv2": ("clip",),
}

# Metrics that are their weights: no other model may stand in, and theirs stands in for no other.
OWN_MODEL = frozenset({"pickscore", "hpsv2"})

MetricName = Literal["vqascore", "clipscore", "dsg", "pickscore", "hpsv2"]

A_REDIS = "|".join(redis_url.SCHEMES)  # in a pattern


class SettingsError(Exception):
    """The configuration is wrong; the message is one line that names the setting."""


class Section(BaseModel):
    """A frozen table that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Server(Section):
    """Where to listen and what to take."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Serve `/metrics` on this port instead, without keys."
    )
    api_keys_file: Path | None = Field(
        None, description="File of `name:sha256-of-the-key` lines; without it no key is asked for."
    )
    body_limit_mb: int = Field(64, ge=1, description="Largest request body, in MiB.")
    max_items: int = Field(128, ge=1, description="Most items in one request.")
    default_timeout_ms: int = Field(
        30_000, ge=1, le=LONGEST_TIMEOUT_MS, description="Time for a request that names none."
    )
    grace_s: int = Field(30, ge=0, description="Time to finish requests after SIGTERM, in seconds.")
    stall_s: float = Field(
        120, gt=0, description="Work waiting and no batch finished for this long: not alive."
    )


class Images(Section):
    """What an image may be, and how much of them is held at once."""

    max_pixels: int = Field(50_000_000, ge=1, description="Most pixels, told from the header.")
    max_side: int = Field(16_384, ge=1, description="Longest side, in pixels.")
    max_bytes: int = Field(32 * 2**20, ge=1, description="Most encoded bytes of one image.")
    decode_workers: int = Field(2, ge=1, description="Threads that decode and resize.")
    decoded_budget_mb: int = Field(
        512, ge=1, description="Decoded pixels held by all requests together, in MiB."
    )
    allow_urls: bool = Field(False, description="Fetching images by URL; not built yet, so false only.")

    @model_validator(mode="after")
    def _one_image_fits(self) -> Self:
        if self.allow_urls:
            raise ValueError("allow_urls: fetching images is not built yet")
        if self.max_pixels * BYTES_A_PIXEL > self.decoded_budget_mb * 2**20:
            raise ValueError("decoded_budget_mb is too small for one image of max_pixels")
        return self


class Batch(Section):
    """How much one batch may hold."""

    max_items: int = Field(32, ge=1, description="Most calls in a batch.")
    max_cost_tokens: int = Field(16_384, ge=1, description="Most tokens in a batch.")
    max_batch_ms: float = Field(
        250,
        gt=0,
        description="How long a batch may take, told by the measured pace; one call may take longer.",
    )
    linger_ms: float = Field(
        0, ge=0, description="How long a batch that is not full waits for more calls, on an idle device."
    )


class ModelSettings(Section):
    """One model: its role, what it is loaded by, and where it runs."""

    role: Literal["clip", "vqa", "questions"] | None = Field(
        None, description="What it is for; the table's name where it names a role."
    )
    family: Literal["open_clip", "clip_flant5", "openai_vlm", "transformers", "openai"] = Field(
        description="Which loader reads it, or which API serves it."
    )
    checkpoint: str = Field(
        "", description="Directory, `demo:NAME` for a shipped one, or a hub id `owner/name`."
    )
    model: str = Field(
        "",
        description="open_clip: a model's name, a directory or a hub id, before `checkpoint`;"
        " openai: the served model's name.",
    )
    pretrained: str | None = Field(None, description="open_clip: the weights' tag or file.")
    resize_mode: Literal["shortest", "longest", "squash"] | None = Field(
        None, description="open_clip: how a picture becomes a square; the checkpoint's way by default."
    )
    id: str = Field("", description="The name that scores carry; the checkpoint's by default.")
    revision: str = Field("", description="Revision; for a directory a hash of its weights.")
    device: str = Field("cpu", description="torch device.")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="Weights and arithmetic.")
    compile: bool = Field(
        False, description="clip_flant5: run through torch.compile; first batches of a new size are slow."
    )
    features_mb: int = Field(
        256, ge=0, description="clip_flant5: memory for features of images seen before, in MiB."
    )
    required: bool | None = Field(
        None, description="Not ready without it; default: true for `clip` and `vqa`."
    )
    timeout_s: float = Field(
        60, gt=0, description="Time for one question set; openai families: for one request."
    )
    base_url: str = Field(
        "", pattern=r"^(https?://[^@\s]+)?$", description="openai families: the API's address, to `/v1`."
    )
    api_key_env: str = Field("", description="openai families: the variable that holds the key.")
    max_in_flight: int = Field(64, ge=1, description="openai families: most requests at once.")
    extra_body: dict[str, Any] = Field(
        {"chat_template_kwargs": {"enable_thinking": False}},
        description="openai families: fields added to every request.",
    )
    question: str = Field(
        QUESTION,
        pattern=r"^[^{}]*\{\}[^{}]*$",
        description="openai_vlm: how it is asked whether it sees a text, `{}`.",
    )
    batch: Batch = Batch()

    @model_validator(mode="after")
    def _remote_names_its_server(self) -> Self:
        if self.family in REMOTE and not (self.base_url and self.model):
            raise ValueError(f"family {self.family!r} needs base_url and model")
        return self


class MetricSettings(Section):
    """Which configured model serves a metric; defaults to the role's name."""

    model: str = Field(description="Name of a table under `models`.")


class Weights(Section):
    """What the lanes get of a device while calls of both wait."""

    interactive: float = Field(9, gt=0, description="Share of interactive calls.")
    bulk: float = Field(1, gt=0, description="Share of bulk calls: this much is theirs in any case.")


class QueueSettings(Section):
    """How much may wait, and how the lanes share a device."""

    max_cost: int = Field(4_000_000, ge=1, description="Tokens that may wait in one lane of one model.")
    weights: Weights = Weights()
    ageing_s: float = Field(10, gt=0, description="A bulk call that waited so long doubles bulk's share.")


class CacheSettings(Section):
    """Where what was computed is kept."""

    questions: str = Field(
        "sqlite:///~/.cache/scoregate/questions.sqlite3",
        pattern=rf"^(sqlite:///.|{A_REDIS})",
        repr=False,  # a Redis' address may hold a password
        description="Question sets: `sqlite:///PATH`, or a Redis that several processes share.",
    )
    questions_in_memory: int = Field(4096, ge=1, description="Question sets kept in memory.")
    scores: str = Field(
        "memory",
        pattern=rf"^(memory$|off$|{A_REDIS})",
        repr=False,
        description="Models' answers: kept in memory, in a Redis too, or not at all.",
    )
    scores_mb: int = Field(64, ge=1, description="Memory for models' answers, in MiB.")
    scores_ttl_s: int = Field(7 * 86_400, ge=1, description="Seconds that a Redis keeps a model's answer.")

    @field_validator("questions", "scores")
    @classmethod
    def _redis_has_an_address(cls, place: str) -> str:
        if redis_url.is_redis(place):
            redis_url.check(place)
        return place

    @property
    def redis(self) -> dict[str, str]:
        """The address of each cache that lies in a Redis."""
        places = {"questions": self.questions, "scores": self.scores}
        return {cache: place for cache, place in places.items() if redis_url.is_redis(place)}

    @property
    def questions_path(self) -> Path:
        """The SQLite file."""
        return Path(self.questions.removeprefix("sqlite:///")).expanduser()


class Settings(Section):
    """The whole tree."""

    server: Server = Server()
    images: Images = Images()
    models: dict[str, ModelSettings]
    metrics: dict[MetricName, MetricSettings] = {}
    queue: QueueSettings = QueueSettings()
    cache: CacheSettings = CacheSettings()

    @model_validator(mode="before")
    @classmethod
    def _name_roles(cls, tree: Any) -> Any:
        """A model's role defaults to its name."""
        tables = tree.get("models") if isinstance(tree, dict) else None
        for name, table in (tables or {}).items() if isinstance(tables, dict) else ():
            if isinstance(table, dict):
                table.setdefault("role", name)
        return tree

    @model_validator(mode="after")
    def _families_fit_roles(self) -> Self:
        for name, model in self.models.items():
            if model.role != FAMILIES[model.family]:
                raise ValueError(f"models.{name}: a {model.family} is no {model.role} model")
        return self

    @model_validator(mode="after")
    def _metrics_name_models(self) -> Self:
        for metric, choice in self.metrics.items():
            model = self.models.get(choice.model)
            if model is None or model.role not in SERVES[metric]:
                raise ValueError(f"metrics.{metric}.model: {choice.model!r} is no model for it")
        return self

    def model_for(self, metric: str, role: str) -> str | None:
        """The model that serves *role* for *metric*: as configured, else the role's first that is free."""
        chosen = {name: choice.model for name, choice in self.metrics.items()}
        if metric in chosen and self.models[chosen[metric]].role == role:
            return chosen[metric]
        if metric in OWN_MODEL:
            return None
        owned = {model for name, model in chosen.items() if name in OWN_MODEL} - {role}
        return next((n for n, m in self.models.items() if m.role == role and n not in owned), None)

    def is_required(self, name: str) -> bool:
        """Whether the service is not ready without that model."""
        model = self.models[name]
        return model.role != "questions" if model.required is None else model.required


def read_secret(variable: str, environ: Mapping[str, str] = os.environ) -> str:
    """The value of an environment variable that the settings name.  Raises `SettingsError`."""
    if not environ.get(variable):
        raise SettingsError(f"api_key_env: the environment variable {variable} is not set")
    return environ[variable]


def load_settings(profile: Path | None, environ: Mapping[str, str] = os.environ) -> Settings:
    """
    The settings of *profile* (the demo profile where there is none) under *environ*'s overrides.

    Raises:
        SettingsError: a file that can't be read, an unknown setting, or a value out of its range.
    """
    path = profile or DEMO_PROFILE
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise SettingsError(f"{path}: {exc}") from exc
    for name, value in environ.items():
        # Kubernetes puts names like SCOREGATE_PORT into every pod; ours all have a table.
        if name.startswith(PREFIX) and "__" in name:
            override(tree, name, value)
    try:
        return Settings.model_validate(tree)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {place or 'settings'}: {first['msg']}") from exc


def override(tree: dict[str, Any], name: str, value: str) -> None:
    """Set one value of *tree* from an environment variable."""
    *tables, key = name.removeprefix(PREFIX).lower().split("__")
    for table in tables:
        tree = tree.setdefault(table, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"{name}: {table} is a value, not a table")
    tree[key] = value
