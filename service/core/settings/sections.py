"""The sections of the settings about the process: its server, images, runtime, queues, caches and traces."""

import os
import re
import ssl
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

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


def a_quarter_of_the_memory(files: Iterable[Path] = MEMORY_LIMITS) -> int:
    """
    Return a quarter of the machine's or container's memory in MiB, at most 1024: enough for many large
    bodies.

    Args:
        files: with the container's limits.
    """
    limits = [file.read_text("ascii").strip() for file in files if file.exists()]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(1024, min([machine, *(int(limit) for limit in limits if limit.isdigit())]) // 4 >> 20)


def lacks_packages() -> bool:
    """Return True if packages of the extra `otel` are missing."""
    try:
        return any(find_spec(name) is None for name in OTEL_PACKAGES)
    except ModuleNotFoundError:  # a parent package is missing
        return True


class Server(Section):
    """
    Addresses, limits and timeouts of the HTTP server.

    * **Headers** must be complete `body_timeout_s` after their first byte. Of **bodies**, 8 KiB per second,
      or the end, must arrive in every `body_timeout_s`. Otherwise the response is 408 `request_timeout`.
      **Responses** must be read at that pace, or the connection closes.
    * **Unfinished bodies** share `unfinished_bodies_mb`, at most half of `requests_mb`. Above it, the oldest
      gets 503 `overloaded`. A body has at most 8,192 **chunks**, and one more for every 4 KiB; more get 400.
    * **Connections**: three quarters of the limit of open files, at most 65,536. Further ones get 503
      `overloaded`. Half-closed ones count as disconnected.
    * **Memory.** A body counts in `requests_mb` until the response is written, a picture by URL while it is
      in memory, a line of a stream until it is read. Without room, a request gets 429 `memory_full`. The last
      eighth is reserved for requests and pictures of at most 1 MiB. Plan 1.3 times `requests_mb`, plus
      `images.decoded_budget_mb`, caches and models.
    * **A Unix socket** has the mode 0660: the process's user and group may connect. Its folder must exist and
      be writable. The file is there once requests are served, replaces one that a killed process left, and is
      removed at the end; one on which another process listens is a taken port. `metrics_port` and the ports
      of dialects are still ports.
    """

    host: Given[str] = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port; 0 picks a free one.")
    uds: Given[Path | None] = Field(
        None, description="A Unix socket to listen on, in place of `host` and `port`: an absolute path."
    )
    metrics_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="The operator's port, without keys: `/metrics` (then only there) and changes of models.",
    )
    operator_hosts: list[str] = Field(
        [],
        description="Hosts besides loopback by which `metrics_port` takes changes of models, without ports.",
    )
    api_keys_file: Given[Path | None] = Field(
        None, description="File of API keys and their rights. Without it, every caller is served."
    )
    cors_origins: list[str] = Field(
        [], description="Origins whose web pages may call: `https://HOST`, `https://HOST:PORT`, or `*`."
    )
    body_limit_mb: int = Field(
        64, ge=1, description="Largest request body. Base64 makes a file a third larger."
    )
    max_items: int = Field(128, ge=1, description="Most items of `/score`, and prompts of `/questions`.")
    default_timeout_ms: int = Field(
        30_000,
        ge=1,
        le=MAX_TIMEOUT_MS,
        description="For requests without a timeout of their own.",
    )
    keep_alive_s: int = Field(
        75, ge=1, description="Time until an idle connection is closed: more than in the proxy or client."
    )
    body_timeout_s: float = Field(30, gt=0, description="Time without progress of a slow caller.")
    unfinished_bodies_mb: int = Field(
        512,
        ge=1,
        description="Memory for bodies that are still arriving; one of `body_limit_mb` always fits.",
    )
    requests_mb: int = Field(
        default_factory=a_quarter_of_the_memory,
        ge=1,
        description="Memory for bodies and pictures by URL; at most 1024 by default. Two bodies of "
        "`body_limit_mb` "
        "always fit.",
    )
    grace_s: int = Field(30, ge=0, description="Time for requests in progress after SIGTERM.")
    stall_s: float = Field(
        120, gt=0, description="Time without a finished batch, while work waits, until `/livez` is 503."
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
    """
    Which pictures are accepted, and how much memory they take.

    * **Memory.** In `decoded_budget_mb` a picture takes 8 bytes per pixel as JPEG (progressive up to 10, CMYK
      12), PNG, GIF or BMP, 20 as WebP or TIFF, and 24 as AVIF: by default, WebP and TIFF above 26, and AVIF
      above 22 million pixels are `image_too_large`. AVIF, TIFF, and WebP other than plain lossy are decoded
      in separate processes of about 40 MiB plus the pixels, at most `decode_workers` plus one for each lane.
    * **Pictures by URL**: only `http` and `https`, listed hosts and ports, without wildcards; international
      names as `xn--…`. If any address of a host is not public, the picture is `url_not_allowed`, even of a
      listed host. At most three redirects, each checked likewise, no cookies and no proxies. At most 64 are
      fetched at a time: 16 from one host, 16 for one request, 32 for bulk requests.
    """

    formats: list[str] = Field(
        default_factory=usual_formats,
        min_length=1,
        description=f"Of {', '.join(FORMATS)}. By default all but TIFF, and MP4 only with the package `av`.",
    )
    orient: Orient = Field(
        "as_stored",
        description="The default of a request's `orient`: pixels as stored, or rotated by `exif`.",
    )
    max_pixels: int = Field(
        50_000_000,
        ge=1,
        description="Most pixels of a picture, a frame or a grid, and of an animation's frames "
        "together up to the last "
        "scored one.",
    )
    max_frame_pixels: int = Field(
        960 * 540,
        ge=1,
        description="Pixels of a scored frame of a video or an animation: larger ones are scaled down.",
    )
    max_video_pixels: int = Field(
        4_000_000_000, ge=1, description="Most pixels of an MP4's frames together up to the last scored one."
    )
    max_side: int = Field(16_384, ge=1, description="Longest side in pixels.")
    max_bytes: int = Field(32 * 2**20, ge=1, description="Most encoded bytes of one picture.")
    decode_workers: int = Field(
        default_factory=half_of_the_cores,
        ge=1,
        description="Threads of each lane for decoding, preparing calls, and metrics without models; "
        "at least 2 "
        "by default.",
    )
    decoded_budget_mb: int = Field(
        512,
        ge=1,
        description="Memory for decoded pixels of all requests; at least 8 bytes for each of `max_pixels`.",
    )
    allow_urls: bool = Field(False, description="Fetch pictures by URL.")
    allowed_url_hosts: list[str] = Field(
        [],
        description="Their hosts: `HOST`, or `HOST:PORT` if the port is not the scheme's default; at "
        "least one for "
        "`allow_urls`.",
    )
    url_timeout_s: float = Field(
        10, gt=0, description="Time for one picture, with redirects, without queues."
    )

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


class RuntimeSettings(Section):
    """Where the models run."""

    kind: Literal["local", "ray"] = Field(
        "local",
        description="Where models are loaded. `local`: in this process. `ray`: as replicas on Ray; "
        "needs `pip "
        'install ".[ray]"`.',
    )
    address: str = Field(
        "local",
        pattern=r"^(local|auto|(ray://)?[^\s/@:]+:\d{1,5})$",
        description="`local` starts Ray here. `auto`, or `HOST:PORT` of its head, joins a cluster with this "
        "node.",
    )
    start_timeout_s: float = Field(900, gt=0, description="With `ray`: time until all models must be loaded.")

    @field_validator("address")
    @classmethod
    def _has_a_port(cls, address: str) -> str:
        port = address.rpartition(":")[2]
        if port.isdigit() and int(port) not in range(1, 65536):
            raise ValueError("the port must be 1 to 65535")
        return address


class Telemetry(Section):
    """
    Export of traces.

    | span | of | attributes |
    |---|---|---|
    | `POST /score` | the request | `http.*`, `scoregate.request_id`, `.lane`, `.items` |
    | `decode` | the pixels of one picture | |
    | `metric` | one metric of one item | `scoregate.metric` |
    | `questions` | the look-up or the writing of a set | `scoregate.style`, `.found`: hit, miss, coalesced |
    | `queue`, `model` | calls of one metric that ran in one batch, not cached | `scoregate.model`, `.calls` |
    | `batch` | a batch on a device of this process | `scoregate.model`, `.calls` |
    | `fold` | the merge of frames' scores into one | |

    A batch's span is in the trace of its first call, with links to and from the others. `error.type` is the
    error code.
    """

    otlp_endpoint: HttpAddress = Field(
        "", description="OpenTelemetry collector for traces, such as `http://otel-collector:4318`."
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _can_be_sent(cls, endpoint: str) -> str:
        if endpoint and lacks_packages():
            raise ValueError("traces need OpenTelemetry's packages: pip install '.[otel]'")
        return endpoint


class Weights(Section):
    """The lanes' shares of a device while calls of both wait."""

    interactive: float = Field(9, gt=0, description="Share of interactive calls while both lanes wait.")
    bulk: float = Field(1, gt=0, description="Share of bulk calls.")


class QueueSettings(Section):
    """
    Limits on waiting calls, and the lanes' shares of a device.

    Tokens are patches of pictures and text tokens, estimated. A call of a VQA model behind an API counts as
    1,000, one of a question LLM as its longest answer.
    """

    max_cost: int = Field(
        4_000_000,
        ge=1,
        description="Most tokens of admitted requests in a lane of a model; above it, new ones get 429 "
        "(interactive) or 503 (bulk). One request may use half of it, and always one batch; more "
        "is 413.",
    )
    weights: Weights = Weights()
    ageing_s: float = Field(
        10, gt=0, description="Wait of the oldest bulk call that doubles bulk's share (at most 50 %)."
    )
    wait_for_models: bool = Field(
        False, description="Calls of a model that an operator took away wait for it."
    )


class CacheSettings(Section):
    """
    Where question sets and models' results are cached.

    A Redis is `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, `rediss://` for TLS, or `unix:///PATH[?db=DB]`,
    with special characters of a password percent-encoded. It must be Redis 6.0 or later.

    * **Question sets** are written by one process, and the others wait. If Redis fails, prompts whose set is
      not in memory get `not_ready`.
    * **Model outputs** are shared by processes with the same name and recipe of the model. If Redis fails,
      they are computed again. Errors, and outputs of models without a revision, are not cached.
    * **Memory** of a process: a likelihood takes about 0.5 kB, an embedding of 768 numbers 3.5 kB. In Redis a
      likelihood takes 0.4 kB, such an embedding 5.3 kB, and a question set 1 to 3 kB (estimated).
    * **A full Redis**: set `maxmemory`, and `maxmemory-policy` to `volatile-lru` or `volatile-ttl`, so that
      it drops model outputs and keeps question sets. If sets expire too, use a separate Redis with
      `noeviction` for them.
    * **Outages** delay no request and need no restart. `/readyz` shows the reason under `caches` and stays
      200.
    * **Trust.** Anyone who can write to the Redis can change scores. An ACL can be
      `~scoregate:* +@read +@write +@transaction +@connection`.
    """

    questions: str = Field(
        "sqlite:///~/.cache/scoregate/questions.sqlite3",
        pattern=rf"^(sqlite:///.|{REDIS})",
        repr=False,  # a Redis' address may hold a password
        description="Store of question sets: `sqlite:///PATH` (four slashes before an absolute path), or a "
        "Redis.",
    )
    questions_in_memory: int = Field(4096, ge=1, description="Entries in memory; a set takes two.")
    questions_ttl_s: int | None = Field(
        None,
        ge=60,
        description="Time until a question set expires in Redis and is written anew, which may change "
        "scores. Not set: never.",
    )
    scores: str = Field(
        "memory",
        pattern=rf"^(memory$|off$|{REDIS})",
        repr=False,
        description="Model outputs: `memory`, a Redis with memory in front of it, or `off`, to measure a "
        "model.",
    )
    scores_mb: int = Field(64, ge=1, description="Memory for model outputs.")
    scores_ttl_s: int = Field(7 * 86_400, ge=1, description="Time until a model output expires in Redis.")
    redis_ca_file: Given[Path | None] = Field(
        None, description="Another CA to trust for `rediss://`, as PEM."
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
