"""`scoregate decisions report` on files that the service wrote: its figures, its text and its page."""

import csv
import html
import json
import random
import re
import sqlite3
from collections import Counter
from contextlib import closing
from html.parser import HTMLParser
from statistics import quantiles

import numpy as np
import pytest

from scoregate.cli.main import main
from scoregate.report.decisions import page
from scoregate.report.decisions.drift import drift
from scoregate.report.decisions.policy_log import margin
from scoregate.report.decisions.settings import ReportSettings
from service.decisions import schema
from tests.support.decision_logs import write
from tests.support.decision_records import record

DAY = 86_400.0
START = 1_800_000_000.0  # 2027-01-15T08:00Z
SHOW = "show@3f2a90c1d4e5"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def status_of(*arguments):
    try:
        return main(["decisions", *map(str, arguments)])
    except SystemExit as ended:
        return ended.code


def report(folder, *logs, more=()):
    """The figures of logs."""
    assert 0 == status_of("report", *logs, "-o", "out.json", "--html", "page.html", *more)
    return json.loads((folder / "out.json").read_text("utf-8"))


def run_sql(path, query, rows=((),)):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(query, rows)


def end_audits(path, scores, state="complete"):
    """Write the results of audits as the service does."""
    run_sql(path, schema.END_AUDIT, [(state, schema.as_json(each), id) for id, each in scores.items()])


def scored(id, score, day=0, **more):
    """A decision by one metric at 0.5."""
    accepted = score >= 0.5
    values = {
        "time": START + day * DAY,
        "decision": "accept" if accepted else "reject",
        "because": f"vqascore {float(f'{score:.6g}')} {'>=' if accepted else '<'} 0.5",
        "scores": {"vqascore": score},
        "skipped": [],
    }
    return record(id, **values | more)


@pytest.fixture
def logs(folder):
    """The files of two replicas, whose rows are of the same days."""
    chance = random.Random(4)
    rows = [
        scored(f"{n}", score, n // 20, milliseconds=float(n), caller_id=f"c{n % 50}")
        for n, score in enumerate(chance.random() * (1 if n < 140 else 0.6) for n in range(200))
    ]
    late = {
        "errors": {"vqascore": "deadline_exceeded"},
        "because": "without_score: vqascore deadline_exceeded",
    }
    rows += [
        scored("late", 0.0, 1, reason="deadline_exceeded", scores={}, **late),
        scored("bad", 0.0, 1, reason="unreadable", scores={}, errors={"vqascore": "bad_image"}),
        scored("group", 0.9, 1, decision="reject", reason="group", because="group: 1 accepted before it"),
    ]
    write(folder / "decisions-1.sqlite3", *rows[::2])
    write(folder / "decisions-2.sqlite3", *rows[1::2])
    return ["decisions-1.sqlite3", "decisions-2.sqlite3"], rows


def test_a_call_returns_the_figures_and_writes_what_its_settings_name(folder):
    """As the command does, which prints them."""
    write(folder / "a.sqlite3", scored("a", 0.6))
    found = page.report(
        ReportSettings(logs=[folder / "a.sqlite3"], out=folder / "a.json", html=folder / "a.html")
    )

    assert 1 == found["rows"]
    assert found == json.loads((folder / "a.json").read_text("utf-8"))
    assert page.page(found) == (folder / "a.html").read_text("utf-8")


def test_rows_are_counted_by_policy_and_day_over_all_logs(logs, folder):
    """The shares are of all rows; latency has its percentiles."""
    names, rows = logs
    found = report(folder, *names)
    [policy] = found["policies"]
    made = Counter(row.decision for row in rows)

    assert (203, 203) == (found["rows"], policy["rows"])
    assert ("2027-01-15T08:00:00+00:00", "2027-01-24T08:00:00+00:00") == (found["from"], found["to"])
    assert dict(made) == {name: policy[name] for name in made}
    assert made["accept"] / 203 == policy["accept_share"]
    assert (1 / 203, 1 / 203) == (policy["without_score_share"], policy["unreadable_share"])
    cuts = quantiles([row.milliseconds for row in rows], n=100, method="inclusive")
    assert [cuts[49], cuts[94], cuts[98]] == pytest.approx([policy[f"p{n}_ms"] for n in (50, 95, 99)])
    days = [f"2027-01-{15 + n}" for n in range(10)]
    assert days == [row["day"] for row in found["days"]]
    assert [20, 23, *[20] * 8] == [row["rows"] for row in found["days"]]
    assert 1 / 23 == found["days"][1]["without_score_share"]


def test_the_same_rows_in_one_log_have_the_same_figures(logs, folder):
    """In whatever file a row is."""
    names, rows = logs
    write(folder / "all.sqlite3", *rows)

    assert report(folder, *names) == report(folder, "all.sqlite3")


def test_scores_after_the_first_week_are_compared_with_it(logs, folder):
    """Of the metric that every decision had; rows without a score are none."""
    names, rows = logs
    of_score = [row for row in rows if row.scores]
    week = np.array([row.scores["vqascore"] for row in of_score if row.time < START + 6.5 * DAY])
    rest = np.array([row.scores["vqascore"] for row in of_score if row.time > START + 6.5 * DAY])
    expected = drift(week, rest)
    content = report(folder, *names)
    [found] = content["drift"]

    assert ("all", "2027-01-15 to 2027-01-21") == (found["of"], found["reference"])
    assert (141, 60) == (len(week), len(rest)) == (found["before"], found["later"])
    assert (expected.psi, expected.ks, expected.p) == (found["psi"], found["ks"], found["p"])
    assert found["models_changed"] is False
    assert [("2027-01-22", 20), ("2027-01-23", 20), ("2027-01-24", 20)] == [
        (row["day"], row["rows"]) for row in content["drift days"]
    ]


def test_the_reference_may_be_other_days(logs, folder):
    """Both days are in it; rows before them are not compared."""
    names, _ = logs
    [found] = report(folder, *names, more=("--reference", "2027-01-17:2027-01-18"))["drift"]

    assert ("2027-01-17 to 2027-01-18", 40, 120) == (found["reference"], found["before"], found["later"])


@pytest.mark.parametrize("text", ["2027-01-17", "2027-01-18:2027-01-17", "today:tomorrow"])
def test_a_reference_that_is_no_span_of_days_is_refused(logs, capsys, text):
    """With what it has to be."""
    assert 2 == status_of("report", *logs[0], "--reference", text)
    assert "two dates, the earlier one first" in capsys.readouterr().err


def test_a_metric_that_some_decisions_skipped_is_compared_by_its_audits(folder):
    """Rows that had it are chosen by the other metric; the other one is compared by all rows."""
    rows = [scored(f"{n}", n / 60, n // 4, skipped=["dsg"] * (n % 2), audited=n % 3 == 0) for n in range(60)]
    path = folder / write(folder / "decisions.sqlite3", *rows)
    end_audits(path, {f"{n}": {"vqascore": n / 60, "dsg": n / 100} for n in range(0, 57, 3)})
    content = report(folder, path)
    dsg, vqascore = content["drift"]
    [policy] = content["policies"]
    before, later = (
        np.array([n / 100 for n in range(0, 57, 3) if (n >= 28) is after]) for after in (False, True)
    )

    assert (("dsg", "audits"), ("vqascore", "all")) == tuple(
        (each["metric"], each["of"]) for each in (dsg, vqascore)
    )
    assert (10, 9) == (dsg["before"], dsg["later"])
    assert drift(before, later).psi == dsg["psi"]
    assert (28, 32) == (vqascore["before"], vqascore["later"])
    assert (20, 19, 0, 1, 0.05) == tuple(
        policy[name]
        for name in ("audited", "audits_complete", "audits_failed", "audits_dropped", "audits_dropped_share")
    )


def test_a_skipped_metric_without_audits_has_no_drift(folder):
    """The scores that there are would be those that the policy selected."""
    rows = [scored(f"{n}", n / 60, n // 4, scores={"vqascore": n / 60, "dsg": 0.5}) for n in range(60)]
    path = write(folder / "decisions.sqlite3", *rows, scored("x", 0.1, skipped=["dsg"]))
    dsg, _ = report(folder, path)["drift"]

    assert dsg["psi"] is None
    assert "some decisions skipped it, and no row has a complete audit" == dsg["note"]


def test_a_metric_that_orders_groups_is_not_of_all_rows(folder):
    """Rows without a group have no score of it, though they did not skip it; failures are none either."""
    rows = [scored(f"{n}", n / 60, n // 4) for n in range(60)]
    grouped = [scored(f"g{n}", 0.9, n // 4, scores={"vqascore": 0.9, "hpsv3": float(n)}) for n in range(60)]
    late = scored("x", 0.1, scores={}, errors={"vqascore": "lane_full"}, reason="lane_full", because="")
    found = report(folder, write(folder / "decisions.sqlite3", *rows, *grouped, late))["drift"]

    assert [("hpsv3", "audits", 0), ("vqascore", "all", 56)] == [
        (row["metric"], row["of"], row["before"]) for row in found
    ]


def test_error_rates_are_of_drawn_rows_alone(logs, folder):
    """Labels of other rows are counted, whatever they say; the drawn ones stand for all."""
    names, rows = logs
    truth = {row.decision_id: int(row.decision == "accept") for row in rows}
    status_of("sample", *names, "-n", "60", "-o", "drawn.csv")
    with (folder / "drawn.csv").open(newline="") as file:
        drawn = [*csv.DictReader(file)]
    wrong = {
        name: [row["decision_id"] for row in drawn if row["decision"] == name][:5]
        for name in ("accept", "reject")
    }
    truth |= dict.fromkeys(wrong["accept"], 0) | dict.fromkeys(wrong["reject"], 1)
    lines = [f"{row['decision_id']},{truth[row['decision_id']]}" for row in drawn]
    (folder / "labels.csv").write_text("\n".join(["decision_id,good", *lines]))
    status_of("label", *names, "labels.csv")
    first = report(folder, *names)
    ids = {row["decision_id"] for row in drawn}
    others = [row.decision_id for row in rows if row.decision_id not in ids]
    (folder / "more.csv").write_text("\n".join(["decision_id,good", *(f"{id},0" for id in others)]))
    status_of("label", *names, "more.csv")
    second = report(folder, *names)

    made, size = Counter(row.decision for row in rows), Counter(row["decision"] for row in drawn)
    weight = {name: made[name] / size[name] for name in made}
    bad = weight["accept"] * 5 + weight["reject"] * (size["reject"] - 5)
    good = weight["accept"] * (size["accept"] - 5) + weight["reject"] * 5
    [rates] = first["rates"]
    assert 5 * weight["accept"] / bad == pytest.approx(rates["false_accept_rate"])
    assert 5 * weight["reject"] / good == pytest.approx(rates["false_reject_rate"])
    assert rates["false_accept_low"] < rates["false_accept_rate"] < rates["false_accept_high"]
    assert (60, 60) == (rates["drawn"], rates["labelled"])
    assert first["rates"] == second["rates"]
    assert len(others) == sum(row["bad"] for row in second["labels"])
    assert [0] == [*{row["bad"] for row in first["labels"]}]


def test_each_drawing_has_its_own_rates(logs, folder):
    """A row of two drawings counts in both, and no label is counted twice."""
    names, _ = logs
    for seed in (1, 2):
        status_of("sample", *names, "-n", "150", "--seed", seed, "-o", f"{seed}.csv")
    with (folder / "1.csv").open(newline="") as file:
        (folder / "labels.csv").write_text(
            "decision_id,good\n" + "".join(f"{row['decision_id']},1\n" for row in csv.DictReader(file))
        )
    status_of("label", *names, "labels.csv")
    found = report(folder, *names)
    one, two = found["rates"]

    assert (150, 150, 150) == (one["drawn"], two["drawn"], one["labelled"])
    assert 100 <= two["labelled"] < 150
    assert 150 == sum(row["drawn"] for row in found["labels"])


def test_a_label_by_a_callers_id_counts_for_each_of_its_rows(logs, folder):
    """The id of the caller repeats; none of its rows was drawn, so no rate has them."""
    names, rows = logs
    (folder / "labels.csv").write_text("caller_id,good\nc7,1\nc7,0\nc8,0\n")
    status_of("label", *names, "labels.csv")
    found = report(folder, *names)
    of = Counter(row.caller_id for row in rows)

    assert (4, 4) == (of["c7"], of["c8"])
    assert [] == found["rates"]
    assert 0 == found["labelled elsewhere"]
    assert (0, 4, 4) == tuple(sum(row[kind] for row in found["labels"]) for kind in ("good", "bad", "split"))


def test_labels_of_decisions_in_no_given_log_are_counted(logs, folder):
    """Another replica has these rows."""
    names, _ = logs
    rows = [("elsewhere", 1), ("elsewhere", 0), ("1", 1)]
    run_sql(names[0], "INSERT INTO labels VALUES (?, ?, NULL, 0)", rows)
    found = report(folder, *names)

    assert 1 == found["labelled elsewhere"]
    assert 1 == sum(row["good"] for row in found["labels"])


def test_a_decision_of_which_no_row_was_drawn_leaves_the_rates_unknown(folder):
    """A drawing of fewer rows than there are decisions stands for some of them only."""
    rows = [scored(f"{n}", n / 10, time=1_700_000_000.0 + n) for n in range(10)]
    path = write(
        folder / "decisions.sqlite3", *rows, scored("z", 0.3, decision="review", time=1_700_000_005.0)
    )
    status_of("sample", path, "-n", "11", "-o", "drawn.csv")
    run_sql(path, "DELETE FROM samples WHERE stratum = 'review'")
    run_sql(path, "INSERT INTO labels SELECT decision_id, 1, NULL, time FROM samples")
    [rates] = report(folder, path)["rates"]

    assert rates["false_accept_rate"] is rates["false_reject_rate"] is None
    assert "no drawn row of review has a label" == rates["false_accept_note"]


def test_logs_without_rows_have_an_empty_report(folder, capsys):
    """It says so; a log without labels says that none was drawn."""
    path = write(folder / "decisions.sqlite3")
    found = report(folder, path)
    text = (folder / "page.html").read_text("utf-8")

    assert (0, None, [], [], []) == tuple(
        found[name] for name in ("rows", "from", "policies", "drift", "rates")
    )
    assert "The logs have no such row." in text
    assert "No row was drawn for labels (scoregate decisions sample), and none has a label." in html.unescape(
        text
    )
    assert "rows" in capsys.readouterr().out


def test_rows_of_one_policy_are_reported_by_its_ids(folder):
    """A new model is a new id, whose drift begins anew; other policies are left out."""
    old = [scored(f"o{n}", n / 20, n) for n in range(10)]
    new = [
        scored(f"n{n}", n / 20, 10 + n, policy="show@000000000000", models={"vqa": "demo@2"})
        for n in range(10)
    ]
    path = write(folder / "decisions.sqlite3", *old, *new, scored("x", 0.5, policy="strict@111111111111"))
    found = report(folder, path, more=("--policy", "show"))

    assert [(SHOW, None), ("show@000000000000", True)] == [
        (row["policy"], row["models_changed"]) for row in found["policies"]
    ]
    assert [(SHOW, "vqa: demo@1", 10), ("show@000000000000", "vqa: demo@2", 10)] == [
        (row["policy"], row["models"], row["rows"]) for row in found["models"]
    ]
    assert ["2027-01-15 to 2027-01-21", "2027-01-25 to 2027-01-31"] == [
        row["reference"] for row in found["drift"]
    ]


def test_models_that_change_within_the_days_that_are_compared_are_said(folder):
    """Under one id they should not."""
    rows = [scored(f"{n}", n / 20, n, models={"vqa": f"demo@{n // 8}"}) for n in range(12)]
    [found] = report(folder, write(folder / "decisions.sqlite3", *rows))["drift"]

    assert found["models_changed"] is True


def test_the_nearest_decisions_have_the_least_margins(folder):
    """Twenty accepted and twenty rejected ones, the nearest first, by their exact scores."""
    scores = random.Random(1).sample(range(1000), 200)
    rows = [scored(f"{n}", score / 1000, n % 3) for n, score in enumerate(scores)]
    names = write(folder / "1.sqlite3", *rows[:90]), write(folder / "2.sqlite3", *rows[90:])
    found = report(folder, *names)["nearest"]
    accepted = sorted(score / 1000 - 0.5 for score in scores if score >= 500)
    rejected = sorted((score / 1000 - 0.5 for score in scores if score < 500), reverse=True)

    assert pytest.approx([*accepted[:20], *rejected[:20]]) == [row["margin"] for row in found]
    assert ["accept"] * 20 + ["reject"] * 20 == [row["decision"] for row in found]
    assert {row.decision_id for row in rows} > {row["decision_id"] for row in found}


@pytest.mark.parametrize(
    ("because", "scores", "expected"),
    [
        ("vqascore 0.91 >= 0.62 and dsg 1.0 >= 0.5", {"vqascore": 0.91, "dsg": 1.0}, 0.29),
        ("vqascore 0.123457 < 0.62", {"vqascore": 0.1234567}, 0.4965433),
        ("(a 0.5 + b 0.25) * 2.0 >= 1.0", {"a": 0.5, "b": 0.25}, 0.5),
        ("min(judge.quality 3.0, b -1.5) < 0.0", {"judge.quality": 3.0, "b": -1.5}, 1.5),
        ("a 1e-07 > -b 1e+16", {"a": 1e-07, "b": 1e16}, 1e16),
        ("a unknown < 0.5 and b 0.25 < 0.5", {"b": 0.25, "a": 0.5}, 0.25),
        ("a unknown * b 0.0 < 0.5", {"b": 0.0}, None),
        ("group: 1 accepted before it, by a", {"a": 1.0}, None),
    ],
)
def test_a_margin_is_the_least_difference_of_the_comparisons_that_decided(because, scores, expected):
    """From the exact scores; a comparison with an unknown score has none."""
    assert (pytest.approx(expected) if expected is not None else None) == margin(because, scores)


class Parts(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids = Counter(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.ids += [value for name, value in attrs if name == "id"]


def test_the_page_is_one_file_with_every_section(logs, folder):
    """Without scripts and links; what people wrote is escaped."""
    names, _ = logs
    write(folder / "3.sqlite3", scored("x", 0.5, prompt="<script>alert(1)</script>", caller_id="<b>"))
    report(folder, *names, "3.sqlite3")
    text = (folder / "page.html").read_text("utf-8")
    parts = Parts(text)

    assert {"decisions", "rates", "time", "drift", "models", "nearest"} < {*parts.ids}
    assert (0, 0) == (parts.tags["script"], parts.tags["b"])
    assert not re.search(r'(?:src|href)="(?!#)', text)
    assert parts.tags["svg"] >= 3
    assert html.escape("<script>alert(1)</script>") in text


def test_a_bar_of_each_day_is_divided_by_decision(folder):
    """By hand: three of four accepted are 105 of the 140 units that a day is high."""
    path = write(
        folder / "decisions.sqlite3", *(scored(f"{n}", score) for n, score in enumerate((0.6, 0.7, 0.8, 0.1)))
    )
    report(folder, path)
    heights = dict(
        re.findall(r'<rect class="(\w+)"[^>]*height="([\d.]+)"', (folder / "page.html").read_text("utf-8"))
    )

    assert {"accept": "105.0", "review": "0.0", "reject": "35.0"} == heights


def test_a_log_whose_row_is_not_valid_is_refused(folder, capsys):
    """By its decision."""
    path = write(folder / "decisions.sqlite3", scored("a", 0.5))
    run_sql(path, "UPDATE decisions SET scores = '{'")

    assert 2 == status_of("report", path)
    assert "decisions.sqlite3, decision a: its scores are not JSON" in capsys.readouterr().err
