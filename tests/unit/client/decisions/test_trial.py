"""`scoregate policy try` on files that the service wrote."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from math import sqrt

import pytest

from scoregate.cli.main import main
from scoregate.decisions.policies import PolicyFile, policy_of
from scoregate.decisions.trial import Trial, TrialSettings, decided, label_of, tried
from scoregate.errors import InputError
from scoregate.expression import Condition
from scoregate.policy import Policy
from service.decisions import schema
from tests.support.decision_logs import write
from tests.support.decision_records import record

NEW = """
[policies.stricter]
accept = "vqascore >= 0.7 and dsg >= 0.5"
review = "vqascore >= 0.4"
without_score = "review"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.toml").write_text(NEW)
    return tmp_path


def run(capsys, *arguments):
    """The status of `policy try new.toml`, and what it printed."""
    try:
        status = main(["policy", "try", "new.toml", *arguments])
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr()
    return status, said.out, said.err


def trial_of(capsys, *arguments, policy="show@3f2a90c1d4e5"):
    status, out, _ = run(capsys, *arguments, "--json")
    return status, json.loads(out)["logged"][policy]


def label(path, **good):
    """Store labels of decisions, as people gave them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [(id, each, None, 0) for id, several in good.items() for each in several]
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)


def expected(scores):
    """The new decision, by the policy's words."""
    if scores["vqascore"] >= 0.7 and scores["dsg"] >= 0.5:
        return "accept"
    return "review" if scores["vqascore"] >= 0.4 else "reject"


def test_changes_are_counted_from_what_to_what_and_by_label(folder, capsys):
    """Of random scores of all metrics, against the conditions written out."""
    chance, counts, rows, labels = random.Random(0), Counter(), [], {}
    for number in range(300):
        id = f"d{number}"
        scores = {"vqascore": chance.random(), "dsg": chance.random()}
        old = chance.choice(["accept", "review", "reject"])
        labels[id] = [chance.randrange(2) for _ in range(chance.randrange(3))]
        share = sum(labels[id]) / len(labels[id]) if labels[id] else None
        kind = {None: "none", 0: "bad", 0.5: "split", 1: "good"}[share]
        counts[old, expected(scores), kind] += 1
        rows.append(record(id, decision=old, scores=scores))
    names = [write(folder / "1.sqlite3", *rows[:100]), write(folder / "2.sqlite3", *rows[100:])]
    label(names[0], **labels)  # any replica stores a label
    status, found = trial_of(capsys, *names)
    rebuilt = {(each["from"], each["to"], each["label"]): each["rows"] for each in found["decisions"]}

    assert (0, 300, 300) == (status, found["rows"], found["decided"])
    assert counts == rebuilt
    assert sum(count for (old, new, _), count in counts.items() if old != new) == found["changed"]


def test_a_row_that_lacks_a_needed_metric_is_open_and_the_metric_is_named(folder, capsys):
    """A row without it is decided where it cannot matter: here by a low vqascore."""
    name = write(
        folder / "log.sqlite3",
        record("low", scores={"vqascore": 0.1}),
        record("high", scores={"vqascore": 0.9}),
        record("nothing", scores={}),
    )
    status, found = trial_of(capsys, name)
    _, text, _ = run(capsys, name)

    assert (0, 3, 1) == (status, found["rows"], found["decided"])
    assert {"rows": 2, "lacking": {"dsg": 2, "vqascore": 1}} == found["open"]
    assert [{"from": "accept", "to": "reject", "label": "none", "rows": 1}] == found["decisions"]
    assert "2 rows are open, since they lack a metric: dsg 2, vqascore 1\n" in text


def test_where_no_row_can_be_decided_the_status_is_1(folder, capsys):
    """The metrics that they lack are printed."""
    name = write(folder / "log.sqlite3", record("a", scores={"vqascore": 0.9}))
    status, out, _ = run(capsys, name)

    assert 1 == status
    assert "0 of 0 decisions change; 1 rows\n1 rows are open, since they lack a metric: dsg 1" in out


@pytest.mark.parametrize(
    ("scores", "errors", "new"),
    [
        ({"vqascore": 0.9}, {"dsg": "deadline_exceeded"}, "review"),  # without_score
        ({"vqascore": 0.1}, {"dsg": "deadline_exceeded"}, "reject"),
        ({}, {"vqascore": "model_failed"}, ["dsg"]),
        ({"vqascore": 0.9}, {"ocr": "no_frames"}, "reject"),  # unreadable for any metric
        ({}, {"ocr": "model_failed"}, ["vqascore", "dsg"]),
        ({"vqascore": 0.9, "dsg": 0.1}, {"dsg": "deadline_exceeded"}, "review"),  # the score is the audit's
    ],
)
def test_what_failed_fails_again_and_what_was_not_started_is_open(folder, scores, errors, new):
    """An error decides as the new policy says; a picture that cannot be read is so for each metric."""
    policy = policy_of(PolicyFile(file=folder / "new.toml"))

    assert new == decided(policy.rules, scores, errors)


def test_rows_that_their_group_decided_are_left_out_and_counted(folder, capsys):
    """The log has no groups."""
    scores = {"vqascore": 0.9, "dsg": 1.0}
    rows = [record("a", scores=scores), record("b", scores=scores, decision="reject", reason="group")]
    name = write(folder / "log.sqlite3", *rows)
    _, found = trial_of(capsys, name)

    assert (2, 1, 0, 1) == (found["rows"], found["decided"], found["changed"], found["group"])
    assert "1 rows were decided by their group, which no log has, and are left out" in run(capsys, name)[1]


def audited(count, changed, state="complete", scores=None):
    """Rows of a log with audits: the first ones would change."""
    high, low = {"vqascore": 0.9, "dsg": 1.0}, {"vqascore": 0.9, "dsg": 0.0}
    return [
        {"decision": "accept", "reason": "expression", "audit": state, "errors": {}}
        | {"scores": scores or (low if number < changed else high)}
        for number in range(count)
    ]


def added(folder, *rows):
    """The trial of rows."""
    policy, trial = policy_of(PolicyFile(file=folder / "new.toml")), Trial()
    for row in rows:
        trial.add(row, "none", policy.rules)
    return trial


def test_the_share_of_all_decisions_is_that_of_complete_audits(folder):
    """With Wilson's interval; rows that were not drawn are no part of it."""
    rows = audited(40, 10) + audited(500, 500, state=None) + audited(3, 3, state="failed")
    trial = added(folder, *rows)
    z, share = 1.959963984540054, 0.25
    centre, half = share + z * z / 80, z * sqrt(share * (1 - share) / 40 + z * z / 4 / 40 / 40)
    found = trial.as_json()["changed_of_all"]

    assert (0.25, 10, 40) == (found["value"], found["count"], found["of"])
    assert found["interval_95"] == pytest.approx(
        [(centre - half) / (1 + z * z / 40), (centre + half) / (1 + z * z / 40)]
    )
    assert {"complete": 40, "failed": 3, "open": 0} == trial.as_json()["audits"]
    assert 513 == trial.changed


def test_a_picture_that_no_audit_can_read_stands_for_others_of_its_kind(folder):
    """Its audit fails, and its decision needs no score; without it the share would be of readable ones."""
    row = {"decision": "review", "reason": "unreadable", "audit": "failed"}
    row |= {"errors": {"vqascore": "image_undecodable"}, "scores": {}}
    trial = added(folder, *audited(3, 1), row)

    assert (2, 4) == (trial.of_all.count, trial.of_all.of)


def test_audits_are_read_from_the_log_of_the_service(folder, capsys):
    """An audit adds its scores to the row; one that has not ended is a possible bias."""
    scores = {"vqascore": 0.9}
    rows = [record(id, scores=scores, audited=id != "d") for id in "abcd"]
    name = write(folder / "log.sqlite3", *rows)
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        ends = [("complete", json.dumps({**scores, "dsg": dsg}), id) for id, dsg in (("a", 1.0), ("b", 0.0))]
        connection.executemany(schema.END_AUDIT, ends)
    _, out, _ = run(capsys, name)
    share = "0.5000, 1 of 2 (95 % interval 0.0945 to 0.9055)"

    assert f"of all decisions, by the audited rows: {share}; 1 further audits are not complete" in out
    assert "2 rows are open, since they lack a metric: dsg 2" in out


def test_an_open_audit_leaves_the_share_of_all_unknown(folder):
    """Rows that are decided without a metric are no fair sample of all rows."""
    trial = added(folder, *audited(40, 10), *audited(1, 0, scores={"vqascore": 0.9}))

    assert trial.of_all is None
    assert 1 == trial.audit_open


def test_without_audits_the_share_of_all_is_said_to_be_unknown(folder, capsys):
    """In place of a figure of rows that skipping selected."""
    name = write(folder / "log.sqlite3", record(scores={"vqascore": 0.9, "dsg": 1.0}))

    assert "of all decisions: not known, since no row has a complete audit" in run(capsys, name)[1]


@pytest.mark.parametrize(
    ("share", "kind"), [(None, "none"), (0.0, "bad"), (0.4, "bad"), (0.5, "split"), (0.6, "good")]
)
def test_the_label_of_a_row_is_that_of_most_people(share, kind):
    """As many good as bad ones are `split`."""
    assert kind == label_of(share)


def test_each_logged_policy_has_its_own_figures_and_rows_are_chosen(folder, capsys):
    """An item that two policies decided has a row of each."""
    scores = {"vqascore": 0.9, "dsg": 0.0}
    name = write(
        folder / "log.sqlite3",
        record("a", scores=scores),
        record("b", scores=scores, policy="wide@000000000000", decision="review"),
    )
    _, both, _ = run(capsys, name, "--json")
    _, one, _ = run(capsys, name, "--json", "--policy", "wide")

    assert {"show@3f2a90c1d4e5": 1, "wide@000000000000": 0} == {
        id: each["changed"] for id, each in json.loads(both)["logged"].items()
    }
    assert ["wide@000000000000"] == [*json.loads(one)["logged"]]
    assert run(capsys, name, "--policy", "none")[::2] == (2, "scoregate: no row is selected\n")


def test_options_of_the_new_policy_change_no_logged_score(folder, capsys):
    """A warning says so."""
    (folder / "new.toml").write_text(f'{NEW}[policies.stricter.options.vqascore]\noutput = "logit"\n')
    name = write(folder / "log.sqlite3", record(scores={"vqascore": 0.9, "dsg": 1.0}))

    assert "warning: the logged scores have the options of their own policies" in run(capsys, name)[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"has no table \[policies\.NAME\]"),
        ("policies = 1", r"has no table \[policies\.NAME\]"),
        ("policies.show = 1", r"policies\.show: is not a table"),
        ("[policies.show]", r"policies\.show\.accept: is missing"),
        ("[policies.show]\naccept = 1", r"policies\.show\.accept: is not a text"),
        ("[policies.show]\naccept = 'a >'", r"policies\.show\.accept: column \d+: the text cannot be parsed"),
        ("[policies.show]\naccept = 'a > 1'\nrank_by = 'a > 1'", r"policies\.show\.rank_by: column 1"),
        ("[policies.show]\naccept = 'a > 1'\nwithout_score = 'none'", r"without_score: choose from accept"),
        ("[policies.show]\naccept = 'a > 1'\nunreadable = 'accept'", r"unreadable: choose from review"),
        ("[policies.show]\naccept = '1 > 0'", r"policies\.show\.accept: names no metric"),
        ("[policies.show]\naccept = 'a > 1'\noptions = 3", r"policies\.show\.options: is not a table"),
        (f"a = {50_000 * '['}", "new.toml: is nested too deep"),
        ("[policies.show]\naccept = 'a > 1'\naccpt = 1", r"policies\.show\.accpt: no such setting"),
        ("[policies.a]\naccept = 'a > 1'\n[policies.b]\naccept = 'a > 1'", "choose one with `name`: a, b"),
    ],
)
def test_a_file_without_the_policy_is_an_error_with_its_place(folder, text, message):
    """The line names the file and the setting."""
    (folder / "new.toml").write_text(text)

    with pytest.raises(InputError, match=message):
        policy_of(PolicyFile(file=folder / "new.toml"))


def test_one_of_several_policies_of_a_file_is_chosen_by_name(folder):
    """A profile may have several; other tables are not read."""
    (folder / "new.toml").write_text(
        f"{NEW}[policies.other]\naccept = 'dsg > 0.1'\n[models.a]\nfamily = 'x'\n"
    )
    chosen = policy_of(PolicyFile(file=folder / "new.toml", name="other"))

    assert ("other", Policy(Condition.of("dsg > 0.1"))) == (chosen.name, chosen.rules)
    with pytest.raises(InputError, match="has no policy third; there are stricter, other"):
        policy_of(PolicyFile(file=folder / "new.toml", name="third"))


def test_a_row_that_is_not_json_is_named(folder):
    """A figure without it would be wrong."""
    name = write(folder / "log.sqlite3", record("d-7"))
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        connection.execute("UPDATE decisions SET errors = 'no JSON'")

    with pytest.raises(InputError, match="decision d-7: its errors are not JSON"):
        tried(TrialSettings(file=folder / "new.toml", logs=[folder / name]))
