"""Settings of the dialects: the wire formats of other projects."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from models.core.settings import Section
from service.core.settings import Given

MAX_TIMEOUT_S = 600  # any request has this limit
MAX_IMAGES = 4096  # no setting may exceed it


class Timeouts(Section):
    """
    Timeouts of requests, by dialect.

    They are a little shorter than the clients' own: a client that times out sends the same body again.
    """

    flow_factory: float = Field(
        55, gt=0, le=MAX_TIMEOUT_S, description="Of `/compute`; its client waits 60 s."
    )
    unirl: float = Field(
        115, gt=0, le=MAX_TIMEOUT_S, description="Of `/unirl/score`; its trainer waits 300 s."
    )
    cosmos_rl: float = Field(
        300,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="From `/api/reward/enqueue` until what has no score is an error.",
    )
    openrlhf: float = Field(
        170, gt=0, le=MAX_TIMEOUT_S, description="Of `/get_reward`; its trainer waits 180 s."
    )
    slime: float = Field(115, gt=0, le=MAX_TIMEOUT_S, description="Of `/remote_rm`; its trainer waits 120 s.")
    rerank: float = Field(
        30, gt=0, le=MAX_TIMEOUT_S, description="Of rerankers' paths, such as `/v1/rerank`."
    )
    decisions: float = Field(
        30, gt=0, le=MAX_TIMEOUT_S, description="Of `/v1/decisions` and `/v1/systemone`."
    )
    chat_judge: float = Field(
        115, gt=0, le=MAX_TIMEOUT_S, description="Of `/v1/chat/completions`; most clients wait 120 s."
    )
    pickle: float = Field(
        110, gt=0, le=MAX_TIMEOUT_S, description="On `pickle_port`; most clients wait 120 s."
    )


OVER_HTTP = tuple(name for name in Timeouts.model_fields if name != "pickle")  # the names of these dialects


def over_http(name: str) -> str:
    """Return the name of a dialect over HTTP.  Raises `ValueError` for any other."""
    if name not in OVER_HTTP:
        raise ValueError(f"there is no such dialect; there are {', '.join(OVER_HTTP)}")
    return name


class Dialects(Section):
    """Which dialects are served, and on which ports."""

    enabled: list[Annotated[str, AfterValidator(over_http)]] = Field(
        [], description="Dialects over HTTP that are served on the main port."
    )
    host: Given[str] = Field("127.0.0.1", description="Address of the two ports below.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Serve the dialects listed above on this port too, without keys."
    )
    pickle_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Serve the dialects whose bodies are pickles here, without keys.",
    )
    metric: str = Field("", description="The metric of requests that name none; by default that of `/score`.")
    options: dict[str, dict[str, Any]] = Field({}, description="Options by metric, as `/score` takes them.")
    max_pictures: int = Field(
        1024,
        ge=1,
        le=MAX_IMAGES,
        description="Most pictures in a trainer's request, worked on `server.max_items` at a time.",
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
