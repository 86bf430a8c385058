"""Checks of the servers that the settings name, and of no others."""

import time
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import cast

import orjson

from models.core.contract import RemoteModel, UpstreamError
from models.core.settings import RemoteSettings
from models.families.registry import families
from service.core.errors import NotReady
from service.core.redis import TOO_OLD, RedisClient, shown
from service.core.settings import SettingsError
from service.core.settings.environment import read_secret
from service.core.settings.tree import Settings
from service.process.doctor.finding import LATER, WRONG, Finding
from service.serving.backends.trust import Trust
from service.serving.backends.upstream import EXPLAINED, Upstream, explained

MAX_SKEW_S = 30.0
ANSWER_S = 20.0  # for the version, and for each known call
LASTING = ("Authentication", "certificate", "TLS", TOO_OLD)  # in reasons that a person has to remove


async def redis(settings: Settings) -> list[Finding]:
    """Check each Redis of *settings*."""
    found = []
    for cache, url in settings.cache.redis.items():
        name = f"Redis of cache.{cache}"
        async with RedisClient(cache, url, ca_file=settings.cache.redis_ca_file) as client:
            if reason := client.missing:
                lasting = any(word in reason for word in LASTING)
                remedy = f"start it, or correct cache.{cache}"
                found.append(Finding(name, f"{shown(url)} {reason}", remedy, WRONG if lasting else LATER))
            else:
                found.append(Finding(name, f"{shown(url)} answers"))
    return found


async def upstream(name: str, table: RemoteSettings) -> tuple[Finding, str]:
    """Check the server of the model *name*.  Return the finding, and the `Date` of the server's answer."""
    label = f"models.{name}"
    try:
        key = read_secret(table.api_key_env) if table.api_key_env else ""
    except SettingsError as exc:
        return Finding(label, str(exc), "set the variable to the server's key", WRONG), ""
    seconds = min(table.timeout_s, ANSWER_S)
    server = Upstream(table.base_url, api_key=key, timeout_s=seconds, max_in_flight=1)
    version, date = await version_of(server)
    try:
        if reason := await server.missing(table.model):
            wrong = reason.startswith("serves no model") or reason.endswith(("401", "403", "404"))
            remedy = f"correct {label}" if wrong else "start the server"
            fact = f"{table.base_url} {reason}"
            return Finding(label, fact, remedy, WRONG if wrong else LATER), date
        answered = await known_calls(name, table, server)
    except NotReady as exc:
        return Finding(label, str(exc), "serve it with a vLLM that the docs name", WRONG), date
    except UpstreamError as exc:
        status = WRONG if exc.status in EXPLAINED else LATER
        return Finding(label, f"{table.base_url} {explained(exc)}", "see the server's log", status), date
    finally:
        await server.aclose()
    return Finding(label, f"{version} serves {table.model}{answered}"), date


async def known_calls(name: str, table: RemoteSettings, server: Upstream) -> str:
    """
    Send the model's known calls with a priority, as the service does at its start.

    Return what they show.

    Raises:
        NotReady: the answers are wrong, for example without the log-probabilities of the named tokens.
        UpstreamError: the server does not answer.
    """
    model = cast(RemoteModel, families()[table.family].load(name, table))
    calls: Sequence[object] = model.opposites()
    post = partial(server.post, headers={"X-Vllm-Priority": "1"})
    trust = Trust(name, calls, lambda call: model.answer(model.prepare(call), post), time.monotonic)
    await trust.check()
    if not calls:
        return ""
    numbers = "log-probabilities of named tokens" if table.role == "vqa" else "numbers"
    return f", with {numbers} that differ for a right and a wrong text; a priority is accepted"


async def version_of(server: Upstream) -> tuple[str, str]:
    """Return the version of a vLLM, in words, and the `Date` of its answer; empty if it does not answer."""
    try:
        answer = await server.look("../version")
        version = orjson.loads(answer.body)["version"]
    except UpstreamError:
        return "a server", ""
    except (ValueError, KeyError, TypeError):
        return "a server that names no version", answer.headers.get("Date", "")
    return f"vLLM {version}", answer.headers.get("Date", "")


def clock(dates: Iterable[str], now: float) -> Finding:
    """Compare *now*, in seconds since 1970, with the `Date` headers of servers."""
    skews = []
    for date in filter(None, dates):
        try:
            skews.append(now - parsedate_to_datetime(date).timestamp())
        except ValueError:
            continue
    if not skews:
        return Finding("clock", "not checked; no configured server answered with a date", checked=False)
    skew = max(skews, key=abs)
    if abs(skew) > MAX_SKEW_S:
        return Finding("clock", f"{skew:+.0f} s from a configured server", "synchronise both clocks", WRONG)
    return Finding("clock", "agrees with the configured servers")
