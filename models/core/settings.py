"""
Settings of models: those of every table under `models`, and of placed, local and remote models.

A family declares the class of its tables.  A table with a setting of another family is rejected.
"""

import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

NOT_IN_RECIPE: Final = "not in the recipe"
"""
Marks an option that changes no number: `device: Annotated[str, NOT_IN_RECIPE] = "cpu"`.

All other options are part of cache keys and of the comparison of replicas.
"""


ADDRESS = re.compile(r"https?://[^\s@?#\\]+", re.IGNORECASE)


def http_address(address: str) -> str:
    """
    Return *address* unchanged if a path can be appended to it; an empty one is a setting without a value.

    Raises:
        ValueError: no path can be appended.  The message does not quote *address*, which may hold a password.
    """
    plain = address.isascii() and address.isprintable() and ADDRESS.fullmatch(address)
    try:
        usable = bool(plain and urlsplit(address).hostname and urlsplit(address).port != 0)
    except ValueError:  # the port or an IPv6 address is wrong
        usable = False
    if address and not usable:
        raise ValueError(
            "must be http://HOST[:PORT][/PATH] or https://..., with a port up to 65535, and without a user,"
            " a query, spaces and line breaks"
        )
    return address


HttpAddress = Annotated[str, AfterValidator(http_address)]


QuestionTemplate = Annotated[
    str,
    Field(
        pattern=r"^[^{}]*\{\}[^{}]*$",
        description="Template of the question whether a picture shows a text, `{}`.",
    ),
]


class Section(BaseModel):
    """A frozen table that rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Batch(Section):
    """Limits of one batch."""

    max_items: int = Field(32, ge=1, description="Most calls in a batch.")
    max_cost_tokens: int = Field(16_384, ge=1, description="Most tokens in a batch.")
    max_batch_ms: float = Field(
        250,
        gt=0,
        description="Longest batch by the measured cost; one call may take longer.",
    )
    linger_ms: float = Field(
        0, ge=0, description="How long a batch that is not full waits for more calls, on an idle device."
    )


class ModelSettings(Section):
    """Settings of every family."""

    role: str = Field(description="What it is for; the table's name where it names a role.")
    family: str = Field(description="Which loader reads it, or which API serves it.")
    id: Annotated[str, NOT_IN_RECIPE] = Field(
        "", description="The name that scores carry; the checkpoint's by default."
    )
    revision: Annotated[str, NOT_IN_RECIPE] = Field(
        "", description="Revision; for a directory a hash of its weights."
    )
    required: Annotated[bool | None, NOT_IN_RECIPE] = Field(
        None, description="Not ready without it; default: true, but false for families of question LLMs."
    )

    @property
    def is_demo(self) -> bool:
        """True if its results mean nothing for real pictures."""
        return False


class Autoscaling(Section):
    """Limits of Ray Serve's autoscaling."""

    min_replicas: int = Field(1, ge=1, description="Fewest copies.")
    max_replicas: int = Field(ge=1, description="Most copies.")
    target_groups: float = Field(
        1.2, gt=0, description="Groups of calls under way that each copy should have; a busy one has 2."
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError("max_replicas is less than min_replicas")
        return self


class PlacedSettings(ModelSettings):
    """A model that this process loads, or that Ray places."""

    replicas: Annotated[int, NOT_IN_RECIPE] = Field(
        1, ge=1, description="Under Ray: how many copies serve it."
    )
    num_gpus: Annotated[float | None, NOT_IN_RECIPE] = Field(
        None, ge=0, description="Under Ray: GPUs of each copy, also a part of one; by default 1 on a GPU."
    )
    num_cpus: Annotated[float, NOT_IN_RECIPE] = Field(
        1, ge=0, description="Under Ray: CPU cores that each copy reserves."
    )
    autoscaling: Annotated[Autoscaling | None, NOT_IN_RECIPE] = Field(
        None, description="Under Ray: as many copies as the load needs."
    )

    @property
    def fewest(self) -> int:
        """The lowest number of replicas."""
        return self.autoscaling.min_replicas if self.autoscaling else self.replicas

    @classmethod
    def of(cls, table: ModelSettings) -> "PlacedSettings":
        """Return *table* itself, or defaults if its family has no such settings."""
        return table if isinstance(table, PlacedSettings) else cls(role=table.role, family=table.family)

    @model_validator(mode="after")
    def _can_be_placed(self) -> Self:
        if self.autoscaling and self.replicas != 1:
            raise ValueError("replicas and autoscaling: give one of them")
        if self.num_gpus and self.num_gpus > 1 and self.num_gpus % 1:
            raise ValueError("num_gpus: a part of one GPU, or whole ones")
        return self


ALL_DEVICES: Final = "all"


def as_names(devices: Any) -> Any:
    """Return "all" as a list of one name.  Raise an error for any other single name."""
    if isinstance(devices, str) and devices != ALL_DEVICES:
        # The type with which pydantic refuses it: an environment variable is read as JSON then.
        raise PydanticCustomError("tuple_type", 'give a list, such as ["cuda:0", "cuda:1"], or "all"')
    return (ALL_DEVICES,) if devices == ALL_DEVICES else devices


def numbered(device: str) -> str:
    """Return the full name of *device*: "cuda" is "cuda:0"."""
    return device if ":" in device else f"{device}:0"


class DeviceSettings(PlacedSettings):
    """A model on one device of this process, or with a copy on each of several."""

    device: Annotated[str, NOT_IN_RECIPE] = Field("cpu", description="torch device.")
    devices: Annotated[tuple[str, ...] | None, BeforeValidator(as_names), NOT_IN_RECIPE] = Field(
        None, description='Several torch devices in place of one; "all" for every visible GPU.'
    )

    @model_validator(mode="after")
    def _names_each_device_once(self) -> Self:
        default = type(self).model_fields["device"].default  # written by `model_dump`
        if self.devices is not None and self.device != default:
            raise ValueError("device and devices: give one of them")
        if self.devices is not None and not (self.devices and all(self.devices)):
            raise ValueError('devices: names none; give a list of devices, or "all"')
        if self.devices and len(set(map(numbered, self.devices))) < len(self.devices):
            raise ValueError("devices: names one twice; without a number it is the first one")
        if self.devices and ALL_DEVICES in self.devices and len(self.devices) > 1:
            raise ValueError('devices: "all" stands alone')
        return self

    def on(self, device: str) -> Self:
        """Return the settings of the copy on *device*."""
        return self.model_copy(update={"device": device, "devices": None})


class LocalSettings(DeviceSettings):
    """A model that is loaded from a checkpoint."""

    checkpoint: str = Field(
        "", description="Directory, `demo:NAME` for a shipped one, or a hub id `owner/name`."
    )
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="Weights and arithmetic.")
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()

    @property
    def is_demo(self) -> bool:
        """True for a shipped checkpoint, trained on coloured shapes only."""
        return self.checkpoint.startswith("demo:")


class TunedSettings(LocalSettings):
    """A head on a vision-language model; its checkpoint lacks files of the model that it was trained from."""

    dtype: Literal["float32", "bfloat16", "float16"] = Field(  # type: ignore[assignment]  # one more
        "float32", description="Weights and arithmetic; the head is float32."
    )
    base: str = Field(
        "",
        description="Directory or hub id of the base model; by default the published one.",
    )


class RemoteSettings(ModelSettings):
    """A model behind another server's API."""

    base_url: Annotated[HttpAddress, NOT_IN_RECIPE] = Field("", description="The API's address, to `/v1`.")
    model: str = Field("", description="Name of the model on the server.")
    api_key_env: Annotated[str, NOT_IN_RECIPE] = Field(
        "",
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",  # a key in its place must not be quoted
        description="The variable that holds the server's key.",
    )
    timeout_s: Annotated[float, NOT_IN_RECIPE] = Field(
        60, gt=0, description="Time for one request, all its tries included."
    )
    max_in_flight: Annotated[int, NOT_IN_RECIPE] = Field(64, ge=1, description="Most concurrent requests.")
    server_memory_gb: Annotated[dict[str, Annotated[float, Field(gt=0)]], NOT_IN_RECIPE] = Field(
        {}, description='What its server takes on devices of this machine, for `check`: `{"cuda:0" = 10.9}`.'
    )
    extra_body: dict[str, Any] = Field(
        {"chat_template_kwargs": {"enable_thinking": False}}, description="Fields added to every request."
    )

    @model_validator(mode="after")
    def _names_its_server(self) -> Self:
        if not (self.base_url and self.model):
            raise ValueError(f"family {self.family!r} needs base_url and model")
        return self
