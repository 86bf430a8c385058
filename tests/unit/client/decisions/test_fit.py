"""`scoregate policy fit`: thresholds of one metric or two, against a search through all pairs."""

import json
import random
import tomllib
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt

import pytest

from scoregate.calibration import calibrated, read_samples
from scoregate.cli.main import main
from scoregate.decisions.fit import FitSettings as Settings
from scoregate.decisions.fit import (
    LabelledRow,
    best_pair,
    fit_policy,
    fitted,
    halves,
    most_allowed,
    passes,
)
from scoregate.decisions.policies import NamedPolicy, PolicyFile, as_toml, policy_of
from scoregate.errors import InputError, NoResultError
from scoregate.expression import Condition
from scoregate.policy import Policy
from service.core.settings.scoring import PolicySettings
from service.metrics.common.registry import metrics
from service.scoring.policies import served_policy

ASSIGNED = {("vqascore", "vqa"): "vqa", ("clipscore", "clip"): "clip"}


def rows_of(seed, count=60, steps=8):
    """Labelled rows with many equal scores, two for most prompts; good ones score higher."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        good = chance.random() < 0.5
        scores = tuple(min(steps, chance.randrange(steps) + 2 * good) / steps for _ in range(2))
        found.append(LabelledRow(f"prompt {chance.randrange(count // 2)}", scores, good))
    return found


def write(path, rows, **more):
    """A labelled table as `decisions export` writes it."""
    lines = [
        {"prompt": row.prompt, "scores": dict(zip(("vqascore", "clipscore"), row.scores, strict=True))}
        | {"good": int(row.good)}
        | more
        for row in rows
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def settings(path, rate="0.3", **more):
    return Settings(scores=path, false_accept_rate=Fraction(rate), out=path.with_suffix(".toml"), **more)


def counts(rows, pair):
    """The accepted good and bad rows."""
    accepted = [row.good for row in rows if passes(row, pair)]
    return sum(accepted), len(accepted) - sum(accepted)


def wilson_end(count, of):
    """The upper end of the interval, by the formula of Wilson (1927) for the share itself."""
    z, share = 1.959963984540054, count / of
    return (share + z * z / 2 / of + z * sqrt(share * (1 - share) / of + z * z / 4 / of / of)) / (
        1 + z * z / of
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_pair_is_the_best_of_all_pairs(seed):
    """Most good rows, then fewest bad ones, then the larger thresholds; ties within scores included."""
    rows = rows_of(
        seed, count=random.Random(seed).randrange(2, 50), steps=random.Random(seed).choice([3, 30])
    )
    pairs = [*product(*({row.scores[place] for row in rows} for place in (0, 1)))]
    for allowed in (0, 1, 5, 60):
        able = [pair for pair in pairs if counts(rows, pair)[1] <= allowed and counts(rows, pair)[0]]
        expected = max(
            able, key=lambda pair: (counts(rows, pair)[0], -counts(rows, pair)[1], pair), default=None
        )

        assert expected == best_pair(rows, allowed)


def test_a_pair_is_chosen_by_the_end_of_the_interval_and_measured_on_the_other_half(tmp_path):
    """Both halves and all figures are computed again from the rows."""
    rows = rows_of(1, count=400)
    found = fitted(settings(write(tmp_path / "rows.jsonl", rows), seed=3))
    first, other = halves(rows, 3)
    bad = sum(not row.good for row in first)
    pairs = product(*({row.scores[place] for row in first} for place in (0, 1)))
    able = [pair for pair in pairs if wilson_end(counts(first, pair)[1], bad) <= 0.3]
    best = max(able, key=lambda pair: (counts(first, pair)[0], -counts(first, pair)[1], pair))
    good, wrong = counts(other, best)

    assert best == found.thresholds
    assert (good, wrong) == (found.true_accepts.count, found.false_accepts.count)
    assert len(other) == found.true_accepts.of + found.false_accepts.of
    assert (len(first) - bad, bad) == found.chosen_from


@pytest.mark.parametrize("bad", [1, 9, 10, 50, 300])
@pytest.mark.parametrize("rate", ["0.05", "0.3", "0.9", "1"])
def test_the_false_accepts_that_are_allowed_are_the_most_below_the_rate(bad, rate):
    """By Wilson's formula; too few bad rows show no rate at all."""
    allowed = [count for count in range(bad + 1) if wilson_end(count, bad) <= float(rate) + 1e-12]
    if allowed:
        assert max(allowed) == most_allowed(bad, Fraction(rate))
    else:
        with pytest.raises(NoResultError, match=f"{bad} bad rows .* are too few"):
            most_allowed(bad, Fraction(rate))


def test_the_halves_share_no_prompt_and_follow_the_seed():
    """In whatever order the rows stand; the larger half is the first."""
    rows = rows_of(0)
    first, other = halves(rows, 7)
    again, _ = halves(rows[::-1], 7)

    assert not {row.prompt for row in first} & {row.prompt for row in other}
    assert sorted(first) == sorted(again)
    assert 0 <= len({row.prompt for row in first}) - len({row.prompt for row in other}) <= 1
    assert sorted(first) != sorted(halves(rows, 8)[0])


def test_rows_without_a_prompt_are_drawn_one_by_one(tmp_path):
    """A log without prompts may have their digests, which hold equal prompts together."""
    rows = rows_of(2, count=400)
    path = write(tmp_path / "rows.jsonl", rows, prompt=None)
    digests = write(tmp_path / "digests.jsonl", rows, prompt=None, prompt_digest="ab")

    assert 200 == sum(fitted(settings(path)).chosen_from)
    with pytest.raises(NoResultError, match="the other half has no good row"):
        fitted(settings(digests))


@pytest.mark.parametrize("rate", ["0.1", "0.4"])
def test_the_threshold_of_one_metric_is_that_of_calibrate(tmp_path, rate):
    """And the figures are those of `calibrate`, of the same rows."""
    path = write(tmp_path / "rows.jsonl", rows_of(5))
    found = fitted(settings(path, rate, metrics=("vqascore",)))
    calibration = calibrated(read_samples(path, "vqascore", "good"), None, Fraction(rate))

    assert (calibration.threshold,) == found.thresholds
    assert calibration.rates["true_accept_rate"] == found.true_accepts
    assert calibration.rates["false_accept_rate"] == found.false_accepts


def test_of_a_metric_whose_lower_scores_are_better_the_threshold_is_the_most(tmp_path):
    """The pair is the mirror image of that of the negated scores."""
    rows = rows_of(6, count=400)
    mirrored = [row._replace(scores=(-row.scores[0], row.scores[1])) for row in rows]
    plain = fitted(settings(write(tmp_path / "rows.jsonl", rows)))
    turned = settings(write(tmp_path / "mirrored.jsonl", mirrored), lower_is_better=("vqascore",))
    found = fitted(turned)

    assert (-plain.thresholds[0], plain.thresholds[1]) == found.thresholds
    assert f"vqascore <= {found.thresholds[0]!r} and clipscore >= {found.thresholds[1]!r}" == found.accept
    assert plain.true_accepts == found.true_accepts


def test_the_command_writes_a_policy_that_the_service_and_the_client_read(tmp_path, capsys, monkeypatch):
    """With the options of the scores; its comments have the figures, which are printed, too."""
    monkeypatch.chdir(tmp_path)
    lines = [
        {"row": number, "image": "a.png", "sha256": "", "prompt": row.prompt, "errors": {}, "models": {}}
        | {"scores": dict(zip(("vqascore", "clipscore"), row.scores, strict=True))}
        | {"columns": {"good": row.good}, "options": {"vqascore": {"output": "logit"}}}
        for number, row in enumerate(rows_of(1, count=400))
    ]
    (tmp_path / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    command = ["policy", "fit", "scores.jsonl", "--false-accept-rate", "0.3", "-o", "policy.toml"]
    status = main([*command, "--name", "strict"])
    said = capsys.readouterr()
    text = (tmp_path / "policy.toml").read_text()
    table = PolicySettings(**tomllib.loads(text)["policies"]["strict"])
    served = served_policy("strict", metrics(), ASSIGNED, table)
    local = policy_of(PolicyFile(file=tmp_path / "policy.toml"))

    assert (0, "") == (status, said.err)
    assert table.accept == local.rules.accept.text == served.rules.accept.text
    assert said.out.startswith(f"accept = {table.accept}\n  chosen from ")
    assert all(f"# {line.strip()}" in text for line in said.out.splitlines()[1:])
    assert "logit" == served.options["vqascore"].output
    assert {"vqascore": {"output": "logit"}} == local.options
    assert 2 == main([*command, "--name", "strict"]), "an existing file stays"
    assert text == (tmp_path / "policy.toml").read_text()


@pytest.mark.parametrize(
    ("rows", "rate", "why"),
    [
        (rows_of(1, count=60), "0.05", "bad rows in the half that chooses are too few to show"),
        (
            [LabelledRow(f"p{n}", (1.0, 1.0), n % 2 > 0) for n in range(400)],
            "0.2",
            "no pair of thresholds accepts",
        ),
    ],
)
def test_without_a_good_pair_nothing_is_written_and_the_line_says_why(
    tmp_path, capsys, monkeypatch, rows, rate, why
):
    """Status 1."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.jsonl", rows)
    status = main(["policy", "fit", "rows.jsonl", "--false-accept-rate", rate, "-o", "policy.toml"])

    assert 1 == status
    assert why in capsys.readouterr().err
    assert not (tmp_path / "policy.toml").exists()


def test_rows_that_lack_a_score_or_a_label_are_named(tmp_path, capsys, monkeypatch):
    """A share of people is the label of most; an even one is none."""
    monkeypatch.chdir(tmp_path)
    lines = [
        {"prompt": row.prompt, "scores": {"vqascore": row.scores[0], "clipscore": row.scores[1]}}
        | {"good": 0.75 if row.good else 0.25}
        for row in rows_of(1, count=400)
    ]
    lines[0] |= {"scores": {"vqascore": 0.5}}
    lines[1] |= {"good": None}
    lines[2] |= {"good": 0.5}
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    status = main(["policy", "fit", "rows.jsonl", "--false-accept-rate", "0.3", "-o", "policy.toml"])
    err = capsys.readouterr().err

    assert 0 == status
    assert "1 of 400 rows left out, no score of clipscore: row 1\n" in err
    assert "2 of 400 rows left out, no label, or as many good as bad ones: rows 2, 3\n" in err


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({"scores": {"a": 1, "b": 1, "c": 1}}, {}, "choose one or two metrics with `metrics`; there are "),
        ({"scores": None}, {}, "the file has no object `scores`"),
        ({"good": "maybe"}, {}, "row 1, column good: 'maybe' is not a label"),
        ({"good": 1}, {}, "all 60 labels are 1"),
        ({}, {"label": "missing"}, "no column 'missing'"),
        ({}, {"lower_is_better": ("dsg",)}, "lower_is_better='dsg': is none of the metrics"),
        (
            {"scores": {"vqascore": "high"}},
            {"metrics": ("vqascore",)},
            "row 1, column vqascore: 'high' is not a number",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_an_error(tmp_path, change, more, message):
    """It names the row and the column, or what there is."""
    path = write(tmp_path / "rows.jsonl", rows_of(1), **change)

    with pytest.raises(InputError, match=message):
        fitted(settings(path, **more))


def test_scores_of_several_options_have_no_common_threshold(tmp_path):
    """A logit and a probability are not compared."""
    lines = [
        {"row": number, "image": "a.png", "scores": {"vqascore": 0.5}, "errors": {}, "good": number % 2}
        | {"prompt": "a dog", "sha256": "", "models": {}, "options": {"vqascore": {"output": output}}}
        for number, output in enumerate(["logit", "probability"], 1)
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    with pytest.raises(InputError, match="the scores of vqascore are of several options"):
        fitted(settings(path))


def test_a_metric_whose_name_is_none_of_an_expression_has_no_policy(tmp_path):
    """A column of a table may have any name."""
    path = tmp_path / "rows.csv"
    path.write_text("my score,good\n0.1,0\n0.9,1\n")

    with pytest.raises(InputError, match="the text cannot be parsed"):
        fitted(settings(path, metrics=("my score",))).policy("show")


def test_a_call_writes_the_policy_that_it_returns(tmp_path):
    """As the command does; a name with another ending is refused before the rows are read."""
    given = settings(write(tmp_path / "rows.jsonl", rows_of(1, count=400)), name="strict")
    found = fit_policy(given)

    assert found.accept == policy_of(PolicyFile(file=given.out)).rules.accept.text
    with pytest.raises(InputError, match=r"policy\.json: the name must end in \.toml"):
        fit_policy(replace(given, scores=tmp_path / "none.jsonl", out=tmp_path / "policy.json"))


def test_options_of_any_kind_come_back_from_the_file():
    """Texts with quotes or emoji, lists, objects, and keys that need quotes; null is not set."""
    options = {"judge.fit": {"rubric": {"a b": ['"x"\n\x7f', 1, 0.5, True], "none": None}, "text": "é 😀"}}
    text = as_toml(NamedPolicy("show", Policy(Condition.of("judge.fit > 0.5")), options), ["figures"])
    read = tomllib.loads(text)["policies"]["show"]
    options["judge.fit"]["rubric"].pop("none")

    assert {"accept": "judge.fit > 0.5", "options": options} == read


@pytest.mark.parametrize("name", ["", "Show", "1st", "a-b", "a" * 65])
def test_a_name_that_no_policy_may_have_is_refused(name, capsys):
    """As the service refuses it."""
    with pytest.raises(SystemExit):
        main(["policy", "fit", "x.jsonl", "--false-accept-rate", "0.1", "-o", "p.toml", "--name", name])

    assert "a policy's name has a-z" in capsys.readouterr().err
