"""Warnings of a report in a response: sentences and their codes."""

from service.scoring.report import Report, Warned
from service.web.wire.responses import WarningCode, Warnings


def warnings_of(report: Report) -> Warnings:
    """Return two fields of a response, with the same length; none without warnings."""
    warned = report.warnings
    if not warned:
        return {}
    return {
        "warnings": [each.sentence for each in warned],
        "warning_codes": [code_of(each) for each in warned],
    }


def code_of(warned: Warned) -> WarningCode:
    """Return the machine-readable form of a warning."""
    code: WarningCode = {"code": warned.note.code}
    if warned.item is not None:
        code["item"] = warned.item
    if warned.metric is not None:
        code["metric"] = warned.metric
    if warned.note.share is not None:
        code["share"] = warned.note.share
    return code
