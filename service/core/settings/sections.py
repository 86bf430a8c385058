"""The sections of the settings that do not depend on models and metrics."""

import os
import re
import ssl
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from models.core.settings import HttpAddress, Section, http_address
from models.images.formats.contract import BYTES_PER_PIXEL
from models.images.formats.mp4 import MP4, MP4_PACKAGE
from models.images.formats.registry import FORMATS
from service.core import redis
from service.core.fields import Orient
from service.core.settings import Given, SettingsError

HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
PORTS = {"http": 80, "https": 443}  # no other scheme is fetched


def host_and_port(entry: str) -> tuple[str, int | None]:
    """Return a listed host in lower case, and its port if one is listed.  Raises `ValueError`."""
    found = HOST.fullmatch(entry.lower())
    if not found or int(found[2] or 1) not in range(1, 65536):
        raise ValueError(f"{entry!r} is no host, such as images.example.org or images.example.org:8443")
    return found[1].strip("[]"), int(found[2]) if found[2] else None


def is_listed(entries: Iterable[str], scheme: str, host: str, port: int | None) -> bool:
    """
    Return True if *entries* list the host and port; an entry without a port means the scheme's default port.
    """
    usual = PORTS.get(scheme)
    return usual is not None and any(
        (name, listed or usual) == (host.lower(), port or usual)
        for name, listed in map(host_and_port, entries)
    )


OTEL_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

MAX_TIMEOUT_MS = 600_000  # longest timeout of a request

MAX_SOCKET_BYTES = 107  # the kernel accepts no longer path of a Unix socket

ORIGIN = re.compile(r"\*|https?://[^\s/@?#]+")

# The memory limit of a container in bytes, for both versions of control groups; "max" if there is none.
MEMORY_LIMITS = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]

REDIS = "|".join(redis.SCHEMES)  # the schemes as a part of a pattern


def a_quarter_of_the_memory() -> int:
    """
    Return a quarter of the machine's or container's memory in MiB, at most 1024: enough for many large
    bodies.
    """
    limits = [file.read_text("ascii").strip() for file in MEMORY_LIMITS if file.exists()]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(1024, min([machine, *(int(limit) for limit in limits if limit.isdigit())]) // 4 >> 20)


def lacks_packages() -> bool:
    """Return True if packages of the extra `otel` are missing."""
    try:
        return any(find_spec(name) is None for name in OTEL_PACKAGES)
    except ModuleNotFoundError:  # a parent package is missing
        return True


class Server(Section):
    """Addresses, limits and timeouts of the HTTP server."""

    host: Given[str] = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    uds: Given[Path | None] = Field(
        None, description="Unix socket to listen on, in place of `host` and `port`: an absolute path."
    )
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Serve `/metrics` on this port instead, without keys."
    )
    operator_hosts: list[str] = Field(
        [], description="Hosts, besides loopback, by which `metrics_port` takes changes of models."
    )
    api_keys_file: Given[Path | None] = Field(
        None, description="TOML file of the hashes and rights of API keys; without it no key is required."
    )
    cors_origins: list[str] = Field(
        [], description="Origins whose pages may call the service: `https://HOST`, or `*` for all."
    )
    body_limit_mb: int = Field(64, ge=1, description="Largest request body, in MiB.")
    max_items: int = Field(128, ge=1, description="Most items in one request.")
    default_timeout_ms: int = Field(
        30_000, ge=1, le=MAX_TIMEOUT_MS, description="Time for a request that names none."
    )
    keep_alive_s: int = Field(75, ge=1, description="Time that a connection may be idle, in seconds.")
    body_timeout_s: float = Field(
        30, gt=0, description="Seconds without progress until headers, bodies or responses are given up."
    )
    unfinished_bodies_mb: int = Field(
        512, ge=1, description="Memory for bodies that are still coming, of all requests together, in MiB."
    )
    requests_mb: int = Field(
        default_factory=a_quarter_of_the_memory,
        ge=1,
        description="Memory for the bodies and the images by URL of all requests together, in MiB.",
    )
    grace_s: int = Field(30, ge=0, description="Time to finish requests after SIGTERM, in seconds.")
    stall_s: float = Field(
        120, gt=0, description="Work waiting and no batch finished for this long: not alive."
    )

    @property
    def request_bytes(self) -> int:
        """Most bytes that all requests may hold together; two of the largest bodies always fit."""
        return max(self.requests_mb, 2 * self.body_limit_mb) * 2**20

    @field_validator("uds")
    @classmethod
    def _fits_the_kernel(cls, path: Path | None) -> Path | None:
        if path and not (path.is_absolute() and str(path).isprintable()):
            raise ValueError(f"{path}: a Unix socket is an absolute path, such as /run/scoregate/http.sock")
        if path and len(os.fsencode(path)) > MAX_SOCKET_BYTES:
            raise ValueError(f"{path}: the path of a Unix socket has at most {MAX_SOCKET_BYTES} bytes")
        return path

    @field_validator("operator_hosts")
    @classmethod
    def _hosts(cls, hosts: list[str]) -> list[str]:
        for host in hosts:
            if host_and_port(host)[1] is not None:
                raise ValueError(f"{host}: a host without its port, such as gpu-1.example.org")
        return hosts

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin}: an origin is https://HOST or https://HOST:PORT, without a path")
            if origin != "*":
                http_address(origin)
        return origins


def half_of_the_cores() -> int:
    """Return half of the cores that this process may use; at least 2, so that images decode concurrently."""
    return max(2, len(os.sched_getaffinity(0)) // 2)


def usual_formats() -> list[str]:
    """Return the formats that are read by default; videos if their decoder is installed."""
    videos = [MP4.name] if find_spec(MP4_PACKAGE) else []
    return ["JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF", *videos]


class Images(Section):
    """Which images are accepted, and how much memory they take."""

    formats: list[str] = Field(
        default_factory=usual_formats,
        min_length=1,
        description=f"What is read, of {', '.join(FORMATS)}.",
    )
    orient: Orient = Field(
        "as_stored", description="Pixels of requests that do not say: as stored, or turned by `exif`."
    )
    max_pixels: int = Field(
        50_000_000, ge=1, description="Most pixels of an image or of one frame, by the header."
    )
    max_frame_pixels: int = Field(
        960 * 540, ge=1, description="Pixels of a scored frame; larger frames of a file are scaled down."
    )
    max_video_pixels: int = Field(
        4_000_000_000, ge=1, description="Most pixels of a video's frames up to the last one that is scored."
    )
    max_side: int = Field(16_384, ge=1, description="Longest side, in pixels.")
    max_bytes: int = Field(32 * 2**20, ge=1, description="Most encoded bytes of one image.")
    decode_workers: int = Field(
        default_factory=half_of_the_cores,
        ge=1,
        description="Threads of each lane that decode and resize; 2 at least by default.",
    )
    decoded_budget_mb: int = Field(
        512, ge=1, description="Decoded pixels held by all requests together, in MiB."
    )
    allow_urls: bool = Field(False, description="Fetch images by URL from the hosts that are listed.")
    allowed_url_hosts: list[str] = Field(
        [], description="Hosts that images are fetched from: `HOST`, or `HOST:PORT`."
    )
    url_timeout_s: float = Field(10, gt=0, description="Time for fetching one image, in seconds.")

    @field_validator("formats")
    @classmethod
    def _known(cls, formats: list[str]) -> list[str]:
        unknown = [name for name in formats if name.upper() not in FORMATS]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not among {', '.join(FORMATS)}")
        if MP4.name in map(str.upper, formats) and find_spec(MP4_PACKAGE) is None:
            raise ValueError(f"{MP4.name} needs the package {MP4_PACKAGE}: pip install '.[video]'")
        return [name.upper() for name in formats]

    @field_validator("allowed_url_hosts")
    @classmethod
    def _hosts(cls, entries: list[str]) -> list[str]:
        for entry in entries:
            host_and_port(entry)
        return entries

    @model_validator(mode="after")
    def _some_host_is_listed(self) -> Self:
        if self.allow_urls and not self.allowed_url_hosts:
            raise ValueError("allowed_url_hosts: allow_urls needs at least one host")
        return self

    @model_validator(mode="after")
    def _one_image_fits(self) -> Self:
        if self.max_pixels * BYTES_PER_PIXEL > self.decoded_budget_mb * 2**20:
            raise ValueError("decoded_budget_mb is too small for one image of max_pixels")
        return self


class JudgeSettings(Section):
    """Rubrics by which vision-language models grade."""

    rubrics: list[Path] = Field([], description="Folders of rubrics, TOML files.")
    prompts: Path = Field(
        Path("prompts"), description="Folder of the instructions that were copied from models' releases."
    )
    allow_inline: bool = Field(False, description="Requests may bring rubrics of their own.")


class RuntimeSettings(Section):
    """Where the models run."""

    kind: Literal["local", "ray"] = Field("local", description="In this process, or where Ray places copies.")
    address: str = Field(
        "local",
        pattern=r"^(local|auto|(ray://)?[^\s/@:]+:\d{1,5})$",
        description="Under Ray: `local` starts it on this machine; `auto` or `HOST:PORT` is a cluster.",
    )
    start_timeout_s: float = Field(
        900, gt=0, description="Under Ray: time for all models to be loaded, in seconds."
    )

    @field_validator("address")
    @classmethod
    def _has_a_port(cls, address: str) -> str:
        port = address.rpartition(":")[2]
        if port.isdigit() and int(port) not in range(1, 65536):
            raise ValueError("the port must be 1 to 65535")
        return address


class Telemetry(Section):
    """Export of traces."""

    otlp_endpoint: HttpAddress = Field(
        "", description="Send traces to this OpenTelemetry collector; OTLP over HTTP."
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _can_be_sent(cls, endpoint: str) -> str:
        if endpoint and lacks_packages():
            raise ValueError("traces need OpenTelemetry's packages: pip install '.[otel]'")
        return endpoint


class Weights(Section):
    """The lanes' shares of a device while calls of both wait."""

    interactive: float = Field(9, gt=0, description="Share of interactive calls.")
    bulk: float = Field(1, gt=0, description="Share of bulk calls: this much is theirs in any case.")


class QueueSettings(Section):
    """Limits on waiting calls, and the lanes' shares of a device."""

    max_cost: int = Field(4_000_000, ge=1, description="Tokens that may wait in one lane of one model.")
    weights: Weights = Weights()
    ageing_s: float = Field(10, gt=0, description="A bulk call that waited so long doubles bulk's share.")
    wait_for_models: bool = Field(
        False, description="Calls of a model that an operator took away wait for it, and are not rejected."
    )


class CacheSettings(Section):
    """Where question sets and models' results are cached."""

    questions: str = Field(
        "sqlite:///~/.cache/scoregate/questions.sqlite3",
        pattern=rf"^(sqlite:///.|{REDIS})",
        repr=False,  # a Redis' address may hold a password
        description="Question sets: `sqlite:///PATH`, or a Redis that several processes share.",
    )
    questions_in_memory: int = Field(4096, ge=1, description="Question sets kept in memory.")
    questions_ttl_s: int | None = Field(
        None, ge=60, description="Seconds that a Redis keeps a question set; without it, forever."
    )
    scores: str = Field(
        "memory",
        pattern=rf"^(memory$|off$|{REDIS})",
        repr=False,
        description="Models' answers: kept in memory, in a Redis too, or not at all.",
    )
    scores_mb: int = Field(64, ge=1, description="Memory for models' answers, in MiB.")
    scores_ttl_s: int = Field(7 * 86_400, ge=1, description="Seconds that a Redis keeps a model's answer.")
    redis_ca_file: Given[Path | None] = Field(
        None, description="PEM file of an authority that signed the certificate of a `rediss://` server."
    )

    @field_validator("questions", "scores")
    @classmethod
    def _redis_has_an_address(cls, place: str) -> str:
        if redis.is_redis(place):
            redis.check(place)
        return place

    @field_validator("redis_ca_file")
    @classmethod
    def _holds_certificates(cls, file: Path | None) -> Path | None:
        try:
            ssl.create_default_context(cafile=file)
        except OSError as exc:  # ssl.SSLError is one
            raise ValueError(f"{file}: no PEM file of certificates that can be read") from exc
        return file

    @model_validator(mode="after")
    def _redis_has_what_is_set(self) -> Self:
        if self.questions_ttl_s and not redis.is_redis(self.questions):
            raise ValueError("questions_ttl_s needs a Redis in cache.questions")
        if self.redis_ca_file and not any(map(redis.has_tls, self.redis.values())):
            raise ValueError("redis_ca_file needs an address that begins with rediss://")
        return self

    @property
    def redis(self) -> dict[str, str]:
        """The address of each cache that is kept in a Redis, by cache."""
        places = {"questions": self.questions, "scores": self.scores}
        return {cache: place for cache, place in places.items() if redis.is_redis(place)}

    @property
    def questions_path(self) -> Path:
        """The SQLite file.  Raises `SettingsError` if the home directory is needed and unknown."""
        try:
            return Path(self.questions.removeprefix("sqlite:///")).expanduser()
        except RuntimeError as exc:
            raise SettingsError(f"cache.questions: {self.questions}: {exc}") from exc


Files = Path | dict[str, Path]
StyleName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class StyleSettings(Section):
    """A question style from files; a parser with several calls needs a table of files, by the call's name."""

    parser: str = Field(description="The form of the messages and of the LLM's answers.")
    instructions: Files = Field(description="File of the text before the prompt.")
    examples: Files | None = Field(None, description="File of in-context examples, after the instructions.")


class QuestionSettings(Section):
    """
    How question sets are written.

    Attributes:
        styles: the profile's own styles, by name.
    """

    styles: dict[StyleName, StyleSettings] = Field({})


Prompts = Literal["text", "digest", "off"]


class DecisionSettings(Section):
    """Where decisions are logged, and what of them."""

    log: Given[str | None] = Field(
        None, pattern="^sqlite:///.", description="A file, as `sqlite:///PATH`; without it nothing is logged."
    )
    prompts: Prompts = Field("text", description="What is logged of prompts: the text, a digest, or nothing.")
    keep_days: int = Field(90, ge=1, le=36_500, description="Days until a row is deleted.")
    audit: float = Field(
        0.0, ge=0, le=1, description="Share of the items that get every metric of their policies."
    )

    @model_validator(mode="after")
    def _log_of_audits(self) -> Self:
        if self.audit and not self.log:
            raise ValueError("audit needs decisions.log, where its scores are stored")
        return self

    @property
    def path(self) -> Path | None:
        """The SQLite file.  Raises `SettingsError` if the home directory is needed and unknown."""
        try:
            return Path(self.log.removeprefix("sqlite:///")).expanduser() if self.log else None
        except RuntimeError as exc:
            raise SettingsError(f"decisions.log: {self.log}: {exc}") from exc


PolicyName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class PolicySettings(Section):
    """The conditions of one policy; each is an expression over metrics."""

    accept: str = Field(description="Condition of items that are accepted.")
    review: str | None = Field(None, description="Condition of those of the others that people review.")
    without_score: Literal["accept", "review", "reject"] = Field(
        "reject", description="The decision where the known scores do not decide."
    )
    unreadable: Literal["review", "reject"] = Field(
        "reject", description="The decision about a picture that cannot be read."
    )
    rank_by: str | None = Field(None, description="Formula that orders the accepted items of a group.")
    timeout_ms: int = Field(
        1000, ge=1, le=MAX_TIMEOUT_MS, description="Time for a decision; a request may name a shorter one."
    )
    options: dict[str, dict[str, Any]] = Field({}, description="Options by metric, as `/score` takes them.")
