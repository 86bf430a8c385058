"""Records of decisions, as a log takes them."""

from typing import Any

from service.scoring.decide import DecisionRecord


def record(id: str = "d-1", **changed: Any) -> DecisionRecord:
    """Return a record of an accepted picture."""
    values: dict[str, Any] = {
        "decision_id": id,
        "time": 1_800_000_000.0,
        "request_id": "r-1",
        "caller_id": None,
        "key": "shop",
        "policy": "show@3f2a90c1d4e5",
        "decision": "accept",
        "reason": "expression",
        "because": "vqascore 0.91 >= 0.62",
        "scores": {"vqascore": 0.91},
        "errors": {},
        "skipped": ["ocr"],
        "models": {"vqa": "demo@1"},
        "image": "ab" * 32,
        "prompt": "a red dog",
        "milliseconds": 12.5,
    }
    return DecisionRecord(**values | changed)
