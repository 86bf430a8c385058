"""The installed package `rapidocr` and the weights in its wheel."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from models.core.contract import CheckpointError
from models.core.family import Plan
from models.families.ocr import RapidOcrSettings

PACKAGE = "rapidocr"
WEIGHTS_NAME = "PP-OCRv6-small"
DETECTOR, RECOGNISER = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"


@dataclass(frozen=True, slots=True)
class Package:
    """The version of the installed package and its files of weights."""

    version: str
    detector: Path
    recogniser: Path


def installed() -> Package:
    """Find the package without importing it.  Raises `CheckpointError` if it is not usable."""
    spec, found = find_spec(PACKAGE), version_of(PACKAGE)
    if spec is None or spec.origin is None or not found or find_spec("onnxruntime") is None:
        raise CheckpointError("needs the package rapidocr: pip install '.[ocr]' in the repository's folder")
    weights = Path(spec.origin).parent / "models"
    for name in (DETECTOR, RECOGNISER):
        if not (weights / name).is_file():  # the package would download it
            raise CheckpointError(f"the package rapidocr {found} does not bring {name}; 3.10 does")
    return Package(found, weights / DETECTOR, weights / RECOGNISER)


def version_of(package: str) -> str:
    """Return a package's version; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


BYTES_PER_NUMBER = 4


def plan(settings: RapidOcrSettings) -> Plan:
    """Return the plan of the package's models.  Raises `CheckpointError` if it is not installed."""
    package = installed()
    size = sum(path.stat().st_size for path in (package.detector, package.recogniser))
    return Plan(WEIGHTS_NAME, str(package.detector.parent), size // BYTES_PER_NUMBER)
