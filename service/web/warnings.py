"""A report's warnings as they are answered: sentences, and beside them their codes."""

from typing import Any

from service.observability.notes import Warned
from service.scoring.report import Report


def warnings_of(report: Report) -> dict[str, Any]:
    """The two fields of an answer, as long as each other; neither where there is nothing to warn of."""
    warned = report.warnings
    if not warned:
        return {}
    return {
        "warnings": [each.sentence for each in warned],
        "warning_codes": [code_of(each) for each in warned],
    }


def code_of(warned: Warned) -> dict[str, Any]:
    """What a program needs of a warning."""
    if warned.item is None:
        return {"code": warned.note.code}
    return {"code": warned.note.code, "item": warned.item, "metric": warned.metric}
