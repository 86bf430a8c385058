"""The policies of the settings: what is refused at the start, warnings, and ids."""

from dataclasses import replace

import pytest

from models.core.contract import ModelInfo
from service.core.settings import SettingsError
from service.core.settings.scoring import PolicySettings
from service.metrics.checklist import ChecklistOptions
from service.metrics.common.outputs import output_metric
from service.metrics.common.registry import metrics
from service.metrics.rubrics.checklists import Checklist
from service.metrics.rubrics.tables import with_tables
from service.scoring.policies import given_for, served_policies, together

ASSIGNED = {
    ("vqascore", "vqa"): "vqa",
    ("clipscore", "clip"): "clip",
    ("artifact", "artifact"): "artifact",
    ("dsg", "vqa"): "vqa",
}
KNOWN = {
    **metrics(),
    "artifact": replace(metrics()["artifact"], direction="lower is better"),
    "vqascore.margin": output_metric(metrics()["vqascore"], "margin", "an output", (0, 1)),
}
FIT = "vqascore >= 0.62"


def policy(accept=FIT, **table):
    """The only policy of the settings."""
    return served_policies(KNOWN, ASSIGNED, {"show": PolicySettings(accept=accept, **table)})["show"]


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ({"accept": "vqascore >"}, r"policies\.show\.accept: column \d+: the text cannot be parsed"),
        ({"accept": "vqascore"}, r"policies\.show\.accept: column 1: vqascore is a number"),
        ({"accept": f"{FIT} and wrong > 1"}, r"policies\.show\.accept: column 22: there is no wrong"),
        ({"accept": "1 < 2"}, r"policies\.show\.accept: names no metric"),
        ({"review": "judge.wrong > 1"}, r"policies\.show\.review: column 1: there is no judge\.wrong"),
        (
            {"review": "0 < pickscore"},
            r"policies\.show\.review: column 5: pickscore has no model for its roles: clip",
        ),
        ({"rank_by": FIT}, r"policies\.show\.rank_by: column 1: .* is a condition"),
        ({"rank_by": "vqascore * 1e308 * 1e308"}, r"policies\.show\.rank_by: .* finite number in some cases"),
        ({"rank_by": "hpsv3"}, r"policies\.show\.rank_by: column 1: hpsv3 has no model"),
        (
            {"accept": f"{FIT} or vqascore > 1"},
            r"policies\.show\.accept: column 21: this comparison is never true: vqascore is 0 to 1",
        ),
        ({"review": f"{FIT} and 1 > 2"}, r"policies\.show\.review: column 22: .*: it has no metric"),
        ({"options": {"vqascore": {"wrong": 1}}}, r"policies\.show\.options\.vqascore\.wrong: "),
        ({"options": {"clipscore": {}}}, r"policies\.show\.options\.clipscore: no expression"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_at_the_start(table, refused):
    """The line names the setting and the column."""
    with pytest.raises(SettingsError, match=refused):
        policy(**table)


def test_the_range_is_that_under_the_policys_options():
    """A logit may be larger than 1."""
    logits = {"vqascore": {"output": "logit"}}

    assert policy("vqascore > 1", options=logits).options["vqascore"].output == "logit"


@pytest.mark.parametrize(
    ("accept", "metric"),
    [
        ("vqascore < 0.5", "vqascore"),
        ("0.5 >= vqascore", "vqascore"),
        ("not vqascore > 0.5", "vqascore"),
        ("artifact > 0.5", "artifact"),
        ("not (0.5 > artifact)", "artifact"),
    ],
)
def test_a_metric_that_is_compared_the_wrong_way_round_has_a_warning(accept, metric):
    """With the setting and the column."""
    [warning] = policy(accept).warnings

    assert warning.startswith("policies.show.accept: column ")
    assert f"{metric} is better the " in warning


@pytest.mark.parametrize(("accept", "better"), [("vqascore < 0.5", "higher"), ("artifact > 0.5", "lower")])
def test_a_warning_says_which_scores_are_better(accept, better):
    """In words, after the column."""
    name = accept.partition(" ")[0]
    said = f"policies.show.accept: column 1: {name} is better the {better} it is; this is the reverse"

    assert (said,) == policy(accept).warnings


def test_a_warning_names_the_setting_of_its_comparison():
    """`review` has warnings as `accept` has."""
    [warning] = policy(review="vqascore < 0.5").warnings

    assert warning.startswith("policies.show.review: column 1: ")


@pytest.mark.parametrize("named", ["vqascore", "vqascore.margin"])
def test_a_policy_of_an_output_has_options_of_the_output_or_of_its_metric(named):
    """An expression that has the output uses both."""
    given = {named: {"output": "logit"}}

    assert "logit" == policy("vqascore.margin > 0.5", options=given).options["vqascore.margin"].output


def test_an_output_has_the_options_of_its_metric_unless_it_has_its_own():
    """Of no other metric."""
    table = PolicySettings(accept=FIT, options={"judge": {"a": 1}, "judge.fit": {"b": 2}, "fit": {"c": 3}})

    assert {"b": 2} == given_for("judge.fit", table)
    assert {"a": 1} == given_for("judge.quality", table) == given_for("judge.quality.deep", table)
    assert {} == given_for("vqascore", table)


def test_an_option_that_is_refused_is_named_with_the_reason_alone():
    """Without the words that Pydantic puts before it."""
    with pytest.raises(SettingsError, match=r"^policies\.show\.options\.vqascore\.question: ") as refused:
        policy(options={"vqascore": {"question": "no place"}})

    assert "value error" not in str(refused.value).lower()


@pytest.mark.parametrize(
    "accept",
    [FIT, "0.5 < vqascore", "not vqascore <= 0.5", "artifact < 0.5", "vqascore == 1", "vqascore > clipscore"],
)
def test_a_policy_that_is_right_has_no_warning(accept):
    """Equality and the comparison of two metrics have no wrong way."""
    assert () == policy(accept).warnings


INFO = ModelInfo("vqa", "family", "org/model", "abc", "float32", "cpu")


def test_the_id_changes_with_all_that_decides_and_not_with_the_timeout():
    """Expressions, the two other decisions, options, and the identities of models."""
    models = {"vqa": INFO}
    first = policy().id(models)
    others = [
        policy("vqascore >= 0.63").id(models),
        policy(review="vqascore >= 0.4").id(models),
        policy(rank_by="vqascore").id(models),
        policy(without_score="accept").id(models),
        policy(unreadable="review").id(models),
        policy(options={"vqascore": {"output": "logit"}}).id(models),
        policy().id({"vqa": replace(INFO, revision="def")}),
    ]

    assert first.startswith("show@")
    assert 12 == len(first.removeprefix("show@"))
    assert first == policy("vqascore  >=  0.62", timeout_ms=5).id(models)
    assert len({first, *others}) == 1 + len(others)


def test_the_id_changes_with_the_content_of_a_file_that_an_option_names():
    """A checklist of the same name with another weight decides otherwise."""
    checklists = [Checklist(questions=["Is it red?"], weights=[weight]) for weight in (1.0, 2.0)]
    options = [with_tables(ChecklistOptions, {"mine": each}, "mine", inline=False)() for each in checklists]
    one, two = (replace(policy(), options={"checklist": each}).id({}) for each in options)

    assert one != two


def test_policies_are_decided_together_from_the_same_scores():
    """Unless the options of a metric differ."""
    logits = {"vqascore": {"output": "logit"}}
    both = [policy(), policy("clipscore > 0.2 and vqascore > 0.1")]

    assert ["vqascore", "clipscore"] == [*together(both)]
    with pytest.raises(ValueError, match="different options of vqascore"):
        together([policy(), policy(options=logits)])
