"""The settings of the report on logs of decisions."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from scoregate.decisions.logs import Selection
from scoregate.settings import BadSetting, count, setting

Days = tuple[date, date]  # the first and the last one


def days(text: str) -> Days:
    """Return two dates, the earlier one first."""
    first, colon, last = text.partition(":")
    try:
        found = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        found = None
    if not colon or found is None or found[0] > found[1]:
        raise BadSetting("two dates, the earlier one first, such as 2026-11-01:2026-11-07")
    return found


@dataclass(frozen=True)
class ReportSettings(Selection):
    """What is reported, and where to."""

    html: Path | None = setting("draw the page", default=None, parse=Path, metavar="FILE")
    out: Path | None = setting(
        "write all figures as JSON", "-o", "--out", default=None, parse=Path, metavar="FILE"
    )
    reference: Days | None = setting(
        "the days (UTC) that later ones are compared with (default: the first seven of each policy)",
        default=None,
        parse=days,
        metavar="FROM:TO",
    )
    seed: int = setting("of the intervals (default 0)", default=0, parse=count, metavar="N")
