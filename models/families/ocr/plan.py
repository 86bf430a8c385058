"""The plan of an OCR model for `--check`."""

from models.core.family import Plan
from models.families.ocr import RapidOcrSettings
from models.families.ocr.package import NAME, installed

BYTES = 4  # of each number in the files


def plan(settings: RapidOcrSettings) -> Plan:
    """Return the plan of the package's models.  Raises `CheckpointError` if it is not installed."""
    package = installed()
    size = sum(path.stat().st_size for path in (package.detector, package.recogniser))
    return Plan(NAME, str(package.detector.parent), size // BYTES)
