"""`scoregate batch --policy`: the decision about each row of a data set."""

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import scoregate
from scoregate import runs
from scoregate.errors import InputError
from tests.support.paths import ROOT
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.conftest import run
from tests.unit.client.cli.served import lines

__all__ = ["run"]

PROFILE = str(ROOT / "loadtest" / "fake.toml")
COLOURS = ("red", "lime", "blue", "white", "orange", "brown", "black", "yellow")
# `geneval` has no score without options of a row.
POLICIES = """
[policies.show]
accept = "vqascore >= 0.5"
review = "vqascore >= 0.2"
unreadable = "review"

[policies.strict]
accept = "vqascore >= 0.8"

[policies.objects]
accept = "vqascore + geneval >= 0.5"
review = "geneval >= 0.5"
without_score = "review"

[policies.fluent]
accept = "vqascore >= 0 or geneval >= 0.5"
without_score = "accept"
options.vqascore.output = "logit"
"""
FIELDS = ("policy", "decision", "because")


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """Fake models of this process, with the policies."""
    file = tmp_path_factory.mktemp("policies") / "policies.toml"
    file.write_text(POLICIES, "utf-8")
    with scoregate.load(PROFILE, policies=file) as gate:
        yield gate


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Pictures with a prompt each, the last of which cannot be read."""
    monkeypatch.chdir(tmp_path)
    Path("policies.toml").write_text(POLICIES, "utf-8")
    for colour in COLOURS:
        Path(f"{colour}.png").write_bytes(png(colour))
    Path("cut.png").write_bytes(png()[:40])
    rows = [
        {"image": f"{name}.png", "prompt": "a red square", "policy": f"mine {name}"}
        for name in (*COLOURS, "cut")
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return tmp_path


def decide(gate, policy, out="out.jsonl", **more):
    """Score the rows into *out* by the metrics of a policy."""
    return runs.score("rows.jsonl", out, (), client=gate, policy=policy, **more)


def decisions(rows):
    """The fields of the decision of each row."""
    return [tuple(row[name] for name in FIELDS) for row in rows]


@pytest.mark.parametrize("policy", ["show", "strict", "objects", "fluent"])
def test_a_row_has_the_decision_of_the_service_about_the_same_item(gate, policy):
    """Also where a metric has no score, and may have any of its range, and for an unreadable picture."""
    outcome = decide(gate, policy)
    items = [(Path(row["image"]).read_bytes(), row["prompt"]) for row in lines(Path("rows.jsonl"))]
    direct = gate.decide_items(items, policy, timeout_s=600)
    found = decisions(lines(Path("out.jsonl")))

    assert [(one.policy, one.decision, one.because) for one in direct] == found
    assert 1 < len({decision for _, decision, _ in found})
    assert "unreadable: image_undecodable" == found[-1][-1]
    assert outcome.summary.decisions == {
        name: sum(name == one.decision for one in direct) for name in outcome.summary.decisions
    }


def test_a_metric_without_a_score_may_have_any_of_its_range(gate):
    """Of 0 at least: a row is accepted where the other metric suffices."""
    decide(gate, "objects")
    rows = lines(Path("out.jsonl"))[:-1]

    assert all("geneval" in row["errors"] for row in rows)
    assert ["accept" if row["scores"]["vqascore"] >= 0.5 else "review" for row in rows] == [
        row["decision"] for row in rows
    ]
    assert {"accept", "review"} == {row["decision"] for row in rows}


def test_a_row_that_is_not_sent_is_unreadable(gate):
    """Its file is not there."""
    Path("red.png").unlink()
    decide(gate, "show")
    [first, *_] = lines(Path("out.jsonl"))

    assert ("review", "unreadable: unreadable_row") == (first["decision"], first["because"])


def test_the_metrics_and_options_are_those_of_the_policy(gate):
    """Further metrics are scored, too; options of the policy's metrics are refused."""
    runs.score("rows.jsonl", "out.jsonl", ["clipscore"], client=gate, policy="fluent")
    [first, *_] = lines(Path("out.jsonl"))

    assert {"clipscore", "geneval", "vqascore"} == {*first["scores"], *first["errors"]}
    assert "logit" == first["options"]["vqascore"]["output"]
    assert {"vqascore": [None, None], "geneval": [0, 1]} == gate.policies()["fluent"]["ranges"]
    with pytest.raises(InputError, match="the options of vqascore are those of the policy fluent"):
        decide(gate, "fluent", "new.jsonl", options={"vqascore": {"output": "probability"}})


def test_a_client_has_policies_of_its_own(gate):
    """A file of them would not reach it."""
    with pytest.raises(InputError, match="a client has its own models and policies"):
        decide(gate, "show", policy_file="policies.toml")


def test_a_row_has_no_options_of_its_own_but_a_question_set(gate):
    """As an item of the service."""
    row = {"image": "red.png", "prompt": "a red square", "vqascore.output": "logit"}
    Path("rows.jsonl").write_text(json.dumps(row), "utf-8")

    with pytest.raises(
        InputError, match=r"row 1: the options of vqascore are those of the policy.*: it has output"
    ):
        decide(gate, "show")


def test_finished_shards_are_decided_anew(gate):
    """Each file is of one policy, and is not scored again."""
    for number, colour in enumerate(COLOURS[:2]):
        members = {"1.png": png(colour), "1.txt": b"a red square"}
        tar_of(Path(f"s-{number}.tar"), members)
    runs.score("s-{0..1}.tar", "out", (), client=gate, policy="show")
    first = pq.read_table("out/s-0.parquet").to_pylist()
    written = Path("out/s-0.parquet").stat().st_mtime_ns
    outcomes = [
        runs.score("s-{0..1}.tar", "out", (), client=gate, policy=name) for name in ("show", "strict")
    ]
    [then] = pq.read_table("out/s-0.parquet").to_pylist()

    assert [0, 0] == [outcome.requested for outcome in outcomes]
    assert written < Path("out/s-0.parquet").stat().st_mtime_ns
    assert (first[0]["scores"], "strict") == (then["scores"], then["policy"].partition("@")[0])
    assert {"strict"} == {line["policy"].partition("@")[0] for line in outcomes[1].lines()}


def test_the_manifest_says_what_the_policy_was(gate):
    """By run: the rows have its id."""
    rows = Path("rows.jsonl").read_text("utf-8").splitlines()
    Path("rows.jsonl").write_text("\n".join(rows[:-1]), "utf-8")
    for policy in ("show", "strict", "strict"):
        decide(gate, policy)
    manifest = json.loads(Path("out.jsonl.manifest.json").read_text("utf-8"))
    listed = gate.policies()

    assert ["show", "strict"] == [each["policy"]["id"].partition("@")[0] for each in manifest["runs"]]
    assert [len(COLOURS), 0] == [each["requested"] for each in manifest["runs"]]
    assert {name: listed["strict"][name] for name in ("id", "accept", "without_score", "unreadable")} == (
        manifest["runs"][1]["policy"]
    )


def test_the_command_decides_by_a_policy_of_a_file(run):
    """The summary and the page count the decisions, and a table has them as texts."""
    done = run(
        *("batch", "rows.jsonl", "-o", "out.csv", "--html", "page.html", "--local", PROFILE),
        *("--policy", "show", "--policy-file", "policies.toml"),
    )
    with Path("out.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    counted = [row["decision"] for row in rows].count("accept")

    assert 1 == done.returncode, done.stderr
    assert f"{counted} accept" in done.stderr
    assert ("review", "unreadable: image_undecodable") == (rows[-1]["decision"], rows[-1]["because"])
    page = Path("page.html").read_text("utf-8")
    assert f"Decisions of {rows[0]['policy']}: " in page
    assert 9 == page.count("<dt>decision</dt>")
    assert "<dt>decision</dt><dd>review: unreadable: image_undecodable</dd>" in page


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--policy-file", "policies.toml"), "--policy-file needs --policy NAME"),
        (("--policy", "show", "--metrics-column", "policy"), "each row has the metrics of the policy"),
        (
            ("--policy", "none", "--policy-file", "policies.toml"),
            "no policy none; the service has show, strict",
        ),
        (("--policy", "show", "--filter", "vqascore >= 0"), "vqascore is not scored, see --metric"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(run, arguments, why):
    """Before anything is scored."""
    done = run("batch", "rows.jsonl", "-o", "out.jsonl", "--local", PROFILE, *arguments)

    assert (2, True) == (done.returncode, why in done.stderr), done.stderr
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
def test_another_policy_of_the_same_scores_decides_anew(gate, suffix):
    """Nothing but the row with an error is scored again; a run without a policy changes no decision."""
    out = f"out{suffix}"
    first = [*decide(gate, "show", out).lines()]
    again = decide(gate, "show", out)
    outcome = decide(gate, "strict", out)
    then, options = [*outcome.lines()], first[0]["options"]
    plain = [*runs.score("rows.jsonl", out, client=gate, options=options).lines()]

    assert 1 == again.requested == outcome.requested
    assert ["show"] * 9 == [row["policy"].partition("@")[0] for row in first]
    assert ["strict"] * 9 == [row["policy"].partition("@")[0] for row in then]
    assert [row["scores"] for row in first] == [row["scores"] for row in then]
    assert [f"mine {name}" for name in (*COLOURS, "cut")] == [row["columns"]["policy"] for row in then]
    assert decisions(then)[:-1] == decisions(plain[:-1])
    assert FIELDS[0] not in plain[-1], "a row that such a run scores has no decision"


def test_rows_of_several_generators_are_decided_like_those_of_one(run):
    """By the same policy, with the number of each decision for each of them."""
    for name, colours in {"ours": COLOURS[:4], "theirs": COLOURS[4:]}.items():
        Path(name).mkdir()
        for colour in colours:
            Path(name, f"{colour}.png").write_bytes(png(colour))
    given = ("-p", "a red square", "--policy", "show", "--policy-file", "policies.toml", "--local", PROFILE)
    done = run("batch", "ours=ours", "theirs=theirs", "-o", "out", *given)
    alone = run("batch", "ours", "-o", "alone.jsonl", *given)

    assert 0 == done.returncode, done.stderr
    assert 0 == alone.returncode, alone.stderr
    assert decisions(lines(Path("alone.jsonl"))) == decisions(lines(Path("out/ours.jsonl")))
    counts = Counter(row["decision"] for row in lines(Path("out/ours.jsonl")))
    assert f"ours: {', '.join(f'{n} {name}' for name, n in counts.most_common())}" in done.stderr
