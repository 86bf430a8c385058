"""Warnings of an answer for people: each text once."""

from collections.abc import Sequence

import scoregate
from scoregate.results import with_demo
from scoregate.text import say

MAX_NAMED_IMAGES = 3  # pictures that a warning is about and names


def warn(
    answer: scoregate.Report | scoregate.Ranking | scoregate.Comparison | scoregate.Decisions,
    names: Sequence[str],
) -> None:
    """
    Print the service's warnings to stderr, each text once with the pictures and the metrics that it is about.

    Args:
        names: of the request's items or pictures.
    """
    metrics: dict[tuple[str, int | None], list[str]] = {}
    for notice in with_demo(answer.warnings, answer.models):
        of_item = metrics.setdefault((notice.of_item().detail, notice.item), [])
        of_item += [notice.metric] if notice.metric else []
    about: dict[tuple[str, str], list[str]] = {}
    for (text, item), of_item in metrics.items():
        named = about.setdefault((text, ", ".join(dict.fromkeys(of_item))), [])
        named += [names[item]] if item is not None and item < len(names) else []
    for (text, of_text), named in about.items():
        place = ", ".join(filter(None, [image_names(named), of_text]))
        say(f"warning: {place}: {text}" if place else f"warning: {text}")


def image_names(names: Sequence[str]) -> str:
    """Return *names* for a sentence: the number and the first ones if there are several."""
    if len(names) < 2:
        return "".join(names)
    named = [*names[:MAX_NAMED_IMAGES], *["…"] * (len(names) > MAX_NAMED_IMAGES)]
    return f"{len(names)} pictures ({', '.join(named)})"
