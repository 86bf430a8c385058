"""Logs of decisions, as the service leaves them."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

from service.decisions import schema
from service.decisions.log import opened
from service.scoring.decide import DecisionRecord
from tests.support.decision_records import record

START = 1_800_000_000.0  # 2027-01-15T08:00Z
DAY_S = 86_400


def write(path: Path, *records: DecisionRecord) -> str:
    """Write a log, and return its name."""
    file = opened(path)
    with file.connection:
        file.connection.executemany(schema.INSERT, [schema.row_of(each, "text") for each in records])
    file.close()
    return path.name


def two_weeks(replica: int, rows: int = 400) -> Iterator[DecisionRecord]:
    """Yield decisions of two weeks, in whose last days the scores fall; they are made up."""
    chance = random.Random(replica)
    for n in range(rows):
        day = 14 * n // rows
        score = min(1.0, max(0.0, chance.gauss(0.7 if day < 10 else 0.6, 0.15)))
        decision = "accept" if score >= 0.62 else "review" if score >= 0.4 else "reject"
        yield record(
            f"{replica}-{n}",
            time=START + 14 * DAY_S * n / rows,
            decision=decision,
            because=f"vqascore {float(f'{score:.6g}')} {'>=' if score >= 0.62 else '<'} 0.62",
            scores={"vqascore": score},
            skipped=[],
            milliseconds=20 + chance.expovariate(1 / 40),
        )


def fill(path: Path) -> None:
    """Label the rows of a table: every fourth one is wrong."""
    with path.open(newline="") as file:
        table = [*csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        for number, row in enumerate(table):
            accepted = row["decision"] == "accept"
            writer.writerow({**row, "good": int(accepted is not (number % 4 == 0))})
