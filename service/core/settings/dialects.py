"""Settings of the dialects: the wire formats of other projects."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from models.core.settings import Section
from service.core.settings import Given

MAX_TIMEOUT_S = 600  # any request has this limit
MAX_IMAGES = 4096  # no setting may exceed it


class TimeoutsOverHttp(Section):
    """Timeouts of the dialects on the main port."""

    flow_factory: float = Field(
        55, gt=0, le=MAX_TIMEOUT_S, description="For `/compute`; its client waits 60 seconds by default."
    )
    unirl: float = Field(
        115,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="For `/unirl/score`; its trainer waits 300, its Python client 60.",
    )
    cosmos_rl: float = Field(
        300,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="From `/api/reward/enqueue` until a missing score is an error.",
    )
    openrlhf: float = Field(
        170, gt=0, le=MAX_TIMEOUT_S, description="For `/get_reward`; its trainer waits 180."
    )
    slime: float = Field(115, gt=0, le=MAX_TIMEOUT_S, description="For `/remote_rm`; its trainer waits 120.")
    rerank: float = Field(30, gt=0, le=MAX_TIMEOUT_S, description="For rerankers.")
    decisions: float = Field(
        30, gt=0, le=MAX_TIMEOUT_S, description="For `/v1/decisions` and `/v1/systemone`."
    )
    chat_judge: float = Field(
        115, gt=0, le=MAX_TIMEOUT_S, description="For `/v1/chat/completions`; verl-omni's judge waits 120."
    )


OVER_HTTP = tuple(TimeoutsOverHttp.model_fields)  # the names of these dialects


class Timeouts(TimeoutsOverHttp):
    """
    Timeouts of requests, by dialect; those on ports of their own are last.

    They are a little shorter than the clients' own: a client that times out sends the same body again.
    """

    pickle: float = Field(
        110, gt=0, le=MAX_TIMEOUT_S, description="On `pickle_port`; deepgen_rl waits 600, the others 120."
    )


def over_http(name: str) -> str:
    """Return the name of a dialect over HTTP.  Raises `ValueError` for any other."""
    if name not in OVER_HTTP:
        raise ValueError(f"there is no such dialect; there are {', '.join(OVER_HTTP)}")
    return name


class Dialects(Section):
    """
    Which dialects are served, and on which ports.

    Set `timeouts_s` a little below the client's timeout, or it sends the same pictures again. The header
    `X-Request-Timeout-Ms` overrides them.
    """

    enabled: list[Annotated[str, AfterValidator(over_http)]] = Field(
        [],
        description=f"Dialects on the main port, of {', '.join(OVER_HTTP)}.",
    )
    host: Given[str] = Field("127.0.0.1", description="Address of the two ports below, which need no key.")
    port: int | None = Field(None, ge=1, le=65535, description="Serve `dialects.enabled` here too.")
    pickle_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Serve the pickle dialects here.",
    )
    metric: str = Field("", description="The metric of requests without one. Empty: that of `POST /score`.")
    options: dict[str, dict[str, Any]] = Field({}, description="Options by metric, for all dialects.")
    max_pictures: int = Field(
        1024,
        ge=1,
        le=MAX_IMAGES,
        description="Most pictures in a trainer's request.",
    )
    timeouts_s: Timeouts = Timeouts()

    @field_validator("enabled")
    @classmethod
    def _each_once(cls, enabled: list[str]) -> list[str]:
        if len(set(enabled)) < len(enabled):
            raise ValueError("names a dialect twice")
        return enabled

    @model_validator(mode="after")
    def _the_port_serves_something(self) -> Self:
        if self.port is not None and not self.enabled:
            raise ValueError("port: no dialect is listed in dialects.enabled")
        return self
