"""The service's warnings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PLACED = re.compile(
    r"item (\d+)(?:, ([^\s:]+))?: (.*)", re.DOTALL
)  # how a text begins that is about one item
ITEM = re.compile(r"^item \d+")
NUMBER = re.compile(r"\d+(\.\d+)?")
DEMO = "demo_model"
DEMO_TEXT = re.compile(r"\S+ is a demo model\b")  # of a service that sends no codes


class ScoregateWarning(UserWarning):
    """The service warned about a score; adapters issue one for the first warning of each kind."""


class Notice(str):
    """
    A warning of the service; as a string its text.

    Attributes:
        code: such as `prompt_truncated`; empty if the service sends only texts.
        item: the item's place in its request; None on a `Result`, and if it is about all items.
        metric: None if it is about all metrics.
        share: of unknown tokens, for `unknown_tokens`.
    """

    code: str
    item: int | None
    metric: str | None
    share: float | None

    def __new__(
        cls,
        text: str,
        code: str = "",
        item: int | None = None,
        metric: str | None = None,
        share: float | None = None,
    ) -> Notice:
        made = super().__new__(cls, text)
        made.code, made.item, made.metric, made.share = code, item, metric, share
        return made

    @property
    def kind(self) -> str:
        """The group of the warning: the code, or the beginning of the text without its numbers."""
        return self.code or NUMBER.sub("#", self.of_item().detail.partition(":")[0])

    @property
    def detail(self) -> str:
        """The text without the metric that it begins with."""
        return self.removeprefix(f"{self.metric}: ")

    def of_item(self) -> Notice:
        """Return a copy without the item's index, which is valid only within its request."""
        placed = PLACED.fullmatch(self)
        text = str(self) if not placed else f"{placed[2]}: {placed[3]}" if placed[2] else placed[3]
        return Notice(text, self.code, None, self.metric, self.share)

    def moved(self, item: int) -> Notice:
        """Return a copy about the item at another index."""
        return Notice(ITEM.sub(f"item {item}", self), self.code, item, self.metric)

    def as_json(self) -> dict[str, Any]:
        """Return the warning as in a file of results."""
        return {"code": self.code, "metric": self.metric, "text": str(self)}

    @classmethod
    def of_json(cls, entry: Mapping[str, Any]) -> Notice:
        """Parse `as_json`.  Raises `LookupError`, `TypeError` or `ValueError` for anything else."""
        code, metric, text = entry["code"], entry["metric"], entry["text"]
        if not (isinstance(code, str) and isinstance(text, str) and isinstance(metric, (str, type(None)))):
            raise ValueError("a warning is a text with a code")
        return cls(text, code, None, metric)

    def about(self, index: int, metric: str | None = None) -> bool:
        """Return True if it is about the item at *index*, and about *metric* if one is named."""
        return self.item in (None, index) and (metric is None or self.metric in (None, metric))


def notices_of(raw: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Return the warnings of an answer; `warning_codes` are read if there is one for each text."""
    texts, codes = raw.get("warnings") or [], raw.get("warning_codes") or []
    return tuple(map(notice_of, texts, codes if len(codes) == len(texts) else [None] * len(texts)))


def notice_of(text: str, entry: Mapping[str, Any] | None) -> Notice:
    """Return a warning; without *entry* of `warning_codes`, its place is parsed from the text."""
    if entry is not None:
        item, metric, share = entry.get("item"), entry.get("metric"), entry.get("share")
        place = None if item is None else int(item)
        return Notice(
            text, str(entry["code"]), place, metric and str(metric), None if share is None else float(share)
        )
    placed = PLACED.fullmatch(text)
    code = DEMO if DEMO_TEXT.match(text) else ""
    return Notice(text, code, int(placed[1]) if placed else None, placed[2] if placed else None)
