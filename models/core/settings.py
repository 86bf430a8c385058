"""
Settings of models: those of every table under `models`, and of placed, local and remote models.

A family declares the class of its tables. A table with a setting of another family is rejected.
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

    max_items: int = Field(32, ge=1, description="Most calls in a batch. Question LLMs ignore it.")
    max_cost_tokens: int = Field(
        16_384, ge=1, description="Most tokens in a batch. A call with more runs in a batch of its own."
    )
    max_batch_ms: float = Field(
        250,
        gt=0,
        description="Longest predicted time of a batch, for which an interactive call may wait. If a single "
        "call takes longer, twice its time.",
    )
    linger_ms: float = Field(
        0, ge=0, description="Milliseconds that an idle device waits to fill a batch. Rarely useful."
    )


class ModelSettings(Section):
    """Settings of every family."""

    role: str = Field(
        description="Its role; by default the name of its table. It must be that of its family."
    )
    family: str = Field(description="How the model is loaded or reached.")
    id: Annotated[str, NOT_IN_RECIPE] = Field(
        "", description="The model's name in responses. Empty: the directory's name, or the hub id."
    )
    revision: Annotated[str, NOT_IN_RECIPE] = Field(
        "",
        description="Of a hub id: a branch, tag or commit, or the first digits of the newest commit. "
        "Of others: a label. Empty: a hash of the files, or open_clip's tag.",
    )
    required: Annotated[bool | None, NOT_IN_RECIPE] = Field(
        None,
        description="Whether `/readyz` is 503 while it does not serve. Not set: true, but false for "
        "`transformers` and `openai`.",
    )

    @property
    def is_demo(self) -> bool:
        """True if its results mean nothing for real pictures."""
        return False


class Autoscaling(Section):
    """Limits of Ray Serve's autoscaling."""

    min_replicas: int = Field(1, ge=1, description="Fewest replicas, in place of `replicas`.")
    max_replicas: int = Field(ge=1, description="Most replicas.")
    target_groups: float = Field(
        1.2,
        gt=0,
        description="Groups of calls per replica. A busy one has 2: less than 2 adds replicas under full "
        "load.",
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError("max_replicas is less than min_replicas")
        return self


class PlacedSettings(ModelSettings):
    """
    A model that this process loads, or that Ray places.

    Ray places it with `kind = "ray"` in `[runtime]`. Set `device = "cuda"` then: Ray chooses the GPU.
    """

    replicas: Annotated[int, NOT_IN_RECIPE] = Field(1, ge=1, description="Each in a process of its own.")
    num_gpus: Annotated[float | None, NOT_IN_RECIPE] = Field(
        None, ge=0, description="Per replica: `0.5`, or whole ones. Not set: 1 if `device` is a GPU."
    )
    num_cpus: Annotated[float, NOT_IN_RECIPE] = Field(
        1, ge=0, description="Cores per replica, and on a CPU the threads of the model."
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

    device: Annotated[str, NOT_IN_RECIPE] = Field(
        "cpu", description="A PyTorch device, such as `cuda:0`. Models on one device take turns."
    )
    devices: Annotated[tuple[str, ...] | None, BeforeValidator(as_names), NOT_IN_RECIPE] = Field(
        None,
        description='A copy on each, and one queue: `["cuda:0", "cuda:1"]`, or `"all"` for every visible GPU '
        "(`CUDA_VISIBLE_DEVICES`). Not under Ray.",
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
        "",
        description="A directory, `demo:NAME` for a shipped model, or a hub id `owner/name`, unless there is "
        "such a directory.",
    )
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="Of weights and arithmetic.")
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()

    @property
    def is_demo(self) -> bool:
        """True for a shipped checkpoint, trained on coloured shapes only."""
        return self.checkpoint.startswith("demo:")


class TunedSettings(LocalSettings):
    """
    A head on a vision-language model; its checkpoint lacks files of the model that it was trained from.

    The language model reads picture and instruction once, and a head in float32 has several outputs.

    * **Files.** A checkpoint has weights alone. For one of the hub, the configuration, tokenizer and image
      processor of the family's [base model](models.md) are downloaded. Copy them into a directory of your
      own, or name their place as `base`.
    * **Parity.** On small random checkpoints, tokens equal those of the released code to the bit, and
      outputs within 1e-5 in float32 (`videoalign`: 1e-4), also in a batch with other prompts and pictures.
      Published weights have not been run here.
    * **LoRA.** VideoAlign's checkpoint has a LoRA apart from its weights. Both are added in float32 when it
      is loaded. The layout of a training that saved only `adapter_model.safetensors` and
      `non_lora_state_dict.pth` is not read; nor is another instruction than `detailed_special`.
    * **Positions.** The released code of HPSv3, EditReward and VideoAlign numbers the tokens of a picture
      like those of a text. With the positions in three dimensions that transformers has for the base model,
      outputs of HPSv3's small checkpoint differ by up to 0.64.
    * **Precision.** On the small checkpoints on a CPU, outputs of -1.6 to 1.7 differ from those in float32
      by at most 0.024 in `bfloat16` and 0.0024 in `float16`, which is for cards without bfloat16 (V100,
      T4); of `videoalign`, whose small checkpoint has a large LoRA, by 0.14 and 0.039. Published weights
      were not measured. An output that overflows is an error.
    * **Pictures** are resized to about 200,704 pixels, as in training; frames of a video to between 100,352
      pixels and the checkpoint's `max_frame_pixels`. All frames of an item must have one size then. One
      side may be at most 200 times the other.
    * **Prompts.** Special tokens such as `<|im_end|>` in a prompt are text.
    * **Or vLLM?** It serves a model with one linear layer over the last token as `reward_model`.
    """

    dtype: Literal["float32", "bfloat16", "float16"] = Field(  # type: ignore[assignment]  # one more
        "float32", description="Of weights and arithmetic; `float16` is for cards without bfloat16."
    )
    base: str = Field(
        "",
        description="A directory or hub id with the base model's configuration, tokenizer and image "
        "processor. Empty: the published one; for a directory as `checkpoint`, that directory.",
    )


class RemoteSettings(ModelSettings):
    """
    A model behind another server's API.

    * **Failures.** If a server is down or overloaded, a call is tried three times within `timeout_s`. After
      one call without an answer, or three bad answers in a row, the model's metrics are `degraded` in
      `/health` until a call succeeds, which is tried after 5 s, then up to once a minute. `/readyz` follows
      the server's list of models, every five seconds. A sleeping vLLM counts as down, if its route
      `/is_sleeping` is on.
    * **Checks** of all but question LLMs, with plain red and blue pictures and texts, run at the start, when
      the server comes back or wakes up, and once a minute. The model is `not_ready` if both texts (of a
      decision endpoint, a reranker or an embedder: both pictures) get the same number, to the last digit, as
      from a vLLM with a reasoning parser; if one text gets two numbers, more than 0.05 apart (for rewards
      above 1: 5 %); or if a number differs as much from that of the first check of this process. Then vLLM's
      multimodal cache may be corrupt after a sleep: restart vLLM. After a wanted change of the model,
      restart this service.
    * **Lanes.** `X-Vllm-Priority` is 1 for bulk and 0 for interactive; vLLM uses it for chats with
      `--scheduling-policy priority`.
    * **Revision.** Set the `revision` yourself: caches rely on it.
    """

    base_url: Annotated[HttpAddress, NOT_IN_RECIPE] = Field(
        "",
        description="Required. The API's address, including `/v1`, without a user, a query or spaces. No "
        "redirects or proxies.",
    )
    model: str = Field("", description="Required. The model's name on that server.")
    api_key_env: Annotated[str, NOT_IN_RECIPE] = Field(
        "",
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",  # a key in its place must not be quoted
        description="The environment variable with the server's key.",
    )
    timeout_s: Annotated[float, NOT_IN_RECIPE] = Field(
        60,
        gt=0,
        description="For one request, with retries; for a question LLM also for one set, with the wait.",
    )
    max_in_flight: Annotated[int, NOT_IN_RECIPE] = Field(
        64,
        ge=1,
        description="Most concurrent requests to the server. Other calls wait here, in two lanes. Checks of "
        "the server have connections of their own.",
    )
    server_memory_gb: Annotated[dict[str, Annotated[float, Field(gt=0)]], NOT_IN_RECIPE] = Field(
        {}, description='What the server takes on the GPUs here, for `check`: `{ "cuda:0" = 10.9 }`.'
    )
    extra_body: dict[str, Any] = Field(
        {"chat_template_kwargs": {"enable_thinking": False}},
        description='Fields added to every request. The default turns off "thinking" (`decisions` sends it '
        "only if set); servers that reject unknown fields need `{}`.",
    )

    @model_validator(mode="after")
    def _names_its_server(self) -> Self:
        if not (self.base_url and self.model):
            raise ValueError(f"family {self.family!r} needs base_url and model")
        return self
