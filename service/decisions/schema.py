"""
The tables of the file of decisions, and the rows that are made of records.

`scoregate.decisions.logs` of the client reads the file; it has the same `VERSION`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from service.core.settings.scoring import LoggedPrompts
from service.scoring.decide import DecisionRecord

VERSION = 1  # the tables' version; the file has it as `PRAGMA user_version`

# `time` is in seconds since 1970; `scores`, `errors` and `models` are JSON objects, `skipped` is a list.
# `audit` is NULL, `selected`, `complete` or `failed`; an audit adds its scores to those of the decision.
# A label may be of a decision in another process' file.  A sample is a row that was drawn for labels.
TABLES = f"""
CREATE TABLE IF NOT EXISTS decisions (
    decision_id TEXT PRIMARY KEY, time REAL NOT NULL, request_id TEXT NOT NULL, caller_id TEXT, key_name TEXT,
    policy TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL, because TEXT NOT NULL,
    scores TEXT NOT NULL, errors TEXT NOT NULL, skipped TEXT NOT NULL, models TEXT NOT NULL,
    picture TEXT NOT NULL, prompt TEXT, prompt_digest TEXT, milliseconds REAL NOT NULL, audit TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time);
CREATE TABLE IF NOT EXISTS labels (
    decision_id TEXT NOT NULL, good INTEGER NOT NULL, who TEXT, time REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS labels_by_decision ON labels (decision_id);
CREATE TABLE IF NOT EXISTS samples (
    draw TEXT NOT NULL, decision_id TEXT NOT NULL, stratum TEXT NOT NULL, probability REAL NOT NULL,
    time REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS samples_by_decision ON samples (decision_id);
PRAGMA user_version = {VERSION};
"""
WITH_TIME = ("decisions", "labels", "samples")  # no label or sample is older than its decision
INSERT = f"INSERT INTO decisions VALUES ({', '.join('?' * 18)})"
END_AUDIT = "UPDATE decisions SET audit = ?, scores = ? WHERE decision_id = ?"

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """
    The end of the audit of a decision that was logged as selected.

    Attributes:
        scores: of all metrics of its policy; of a failed one those that there are.
    """

    decision_id: str
    status: Literal["complete", "failed"]
    scores: Mapping[str, float]


def row_of(record: DecisionRecord, prompts: LoggedPrompts) -> Row:
    """Return the row of a record, in the order of the columns; *prompts* says what is kept of its prompt."""
    prompt = record.prompt.encode("utf-8", "replace")
    return (
        record.decision_id,
        record.time,
        record.request_id,
        record.caller_id,
        record.key,
        record.policy,
        record.decision,
        record.reason,
        record.because,
        as_json(record.scores),
        as_json(record.errors),
        as_json(record.skipped),
        as_json(record.models),
        record.image,
        prompt.decode() if prompts == "text" else None,
        hashlib.sha256(prompt).hexdigest() if prompts == "digest" and prompt else None,
        record.milliseconds,
        "selected" if record.audited else None,
    )


def as_json(value: Any) -> str:
    """Return JSON text of what a record holds, whatever its mappings and sequences are."""
    plain = dict(value) if hasattr(value, "keys") else list(value)
    return orjson.dumps(plain, option=orjson.OPT_SERIALIZE_NUMPY).decode()
