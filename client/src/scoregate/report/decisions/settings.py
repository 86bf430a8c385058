"""The settings of the report on logs of decisions."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from scoregate.decisions.logs import Selection
from scoregate.settings import Setting, SettingError, count

Days = tuple[date, date]  # the first and the last one


def days(text: str) -> Days:
    """Return two dates, the earlier one first."""
    first, colon, last = text.partition(":")
    try:
        found = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        found = None
    if not colon or found is None or found[0] > found[1]:
        raise SettingError("two dates, the earlier one first, such as 2026-11-01:2026-11-07")
    return found


@dataclass(frozen=True, kw_only=True)
class ReportSettings(Selection):
    """What is reported, and where to."""

    html: Annotated[Path | None, Setting("draw the page", metavar="FILE")] = None
    out: Annotated[Path | None, Setting("write all figures as JSON", ("-o", "--out"), metavar="FILE")] = None
    reference: Annotated[
        Days | None,
        Setting(
            "the days (UTC) that later ones are compared with (default: the first seven of each policy)",
            parse=days,
            metavar="FROM:TO",
        ),
    ] = None
    seed: Annotated[int, Setting("of the intervals (default 0)", parse=count, metavar="N")] = 0
