"""Logs: one JSON object a line, or text on a terminal.  Never a prompt, an image, a question or a key."""

import logging
import sys
from datetime import UTC, datetime
from math import inf
from typing import Any, TextIO

import orjson
from huggingface_hub.utils.tqdm import disable_progress_bars

FIELDS = ("request_id", "route", "code", "ms", "stages", "items", "lane", "key", "model", "metric")
HIDDEN_FIELDS = ("request_id", "stages")  # fields that are not shown on a terminal

# Loggers whose warnings callers can trigger without limit.
NOISY_LOGGERS = ("asyncio", "uvicorn.error", "scoregate.connections")
REPEAT_S = 60.0


class JsonLines(logging.Formatter):
    """A formatter for programs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "logger": record.name}
        line["event"] = record.getMessage()
        return orjson.dumps({**line, **fields(record)}, default=str).decode()


class TextLines(logging.Formatter):
    """A formatter for people: local time, level, event, and the fields that fit on the line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and further ones for the places of an exception."""
        given = fields(record)
        places = given.pop("traceback", [])
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        shown = [f"{name}={value}" for name, value in given.items() if name not in HIDDEN_FIELDS]
        first = " ".join([at, record.levelname.lower(), record.getMessage(), *shown])
        return "\n    ".join(map(printable, [first, *places]))


def printable(text: str) -> str:
    """Return a text without characters that control a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)


def formatter_for(stream: TextIO) -> logging.Formatter:
    """Return the formatter of lines for people on a terminal, else of JSON."""
    return TextLines() if stream.isatty() else JsonLines()


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the known extra fields of a record, and its exception."""
    given = vars(record)
    found = {name: given[name] for name in FIELDS if name in given}
    if record.exc_info and record.exc_info[1] is not None:
        # Messages of libraries may quote their input, so only the place is logged.
        raised = leaves(record.exc_info[1])
        found["exception"] = type(raised[-1]).__name__
        found["traceback"] = [place for each in raised for place in frames(each)]
    return found


def leaves(raised: BaseException | None) -> list[BaseException]:
    """Return *raised*, followed by its first member if it is an exception group, whose text has no cause."""
    assert raised is not None
    found = [raised]
    while isinstance(found[-1], BaseExceptionGroup):
        found.append(found[-1].exceptions[0])
    return found


def frames(raised: BaseException) -> list[str]:
    """Return file, line and function of every frame of the exception."""
    trace = raised.__traceback__
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places


class OnceAMinute(logging.Filter):
    """A filter that passes warnings and errors of each kind once a minute; lower levels always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}  # when each first line was last written, in seconds

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line is written."""
        if record.levelno < logging.WARNING:
            return True
        kind = record.getMessage().partition("\n")[0]
        if record.created - self._last.get(kind, -inf) < REPEAT_S:
            return False
        self._last[kind] = record.created
        return True


def configure_logging() -> None:
    """Log everything to stderr; our access log replaces uvicorn's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_for(sys.stderr))
    # open_clip logs each of its steps to the root logger.
    handler.addFilter(lambda record: record.name != "root" or record.levelno >= logging.WARNING)
    # Do not collect fields that no line contains.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    sys.unraisablehook = log_unraisable
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("httpx").setLevel(logging.WARNING)
    hub = logging.getLogger("huggingface_hub")
    hub.handlers.clear()  # its own handler has another form
    hub.setLevel(
        logging.ERROR
    )  # each retry of a download is a warning; the service logs the final failure itself
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it quotes bodies
    for name in NOISY_LOGGERS:
        logging.getLogger(name).addFilter(OnceAMinute())
    if not sys.stderr.isatty():
        disable_progress_bars()  # the hub's downloads and transformers' loading show them


def log_unraisable(what: "sys.UnraisableHookArgs") -> None:
    """Log an exception that cannot be caught, such as one in a finalizer."""
    raised = (what.exc_type, what.exc_value, what.exc_traceback)
    logging.getLogger("scoregate").error("an exception was ignored", exc_info=raised)  # type: ignore[arg-type]
