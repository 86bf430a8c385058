"""Composites: metrics that a profile makes of others."""

from dataclasses import replace
from math import inf

import pytest

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.checklist import ChecklistOptions
from service.metrics.checklist import metric as checklist
from service.metrics.common.composites import (
    CompositeDetails,
    CompositePart,
    composite,
    composites,
    lack,
    total,
)
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.metrics.common.registry import assign, configured, own
from service.metrics.rubrics.checklists import Checklist
from service.metrics.rubrics.tables import with_tables
from service.wiring.load import load_settings

REWARD = {
    "vqascore": {"weight": 0.6},
    "pickscore": {"weight": 0.4, "scale": "logit", "divide_by": 26},
}
PICKS = {"pickscore": {"model": "picks"}}


def made(models=("clip", "vqa", "picks"), **tables):
    """The composites of such tables."""
    roles = {"picks": "clip"}
    tree = {name: {"family": "fake", "role": roles.get(name, name)} for name in models}
    settings = Settings.model_validate({"models": tree, "metrics": PICKS, "composites": tables})
    return composites(own(), settings, assign(own(), settings))


def test_the_range_of_a_composite_is_that_of_its_parts():
    """Weights may be negative, options may change a part's range, and some ranges have no end."""
    found = made(
        reward=REWARD,
        against={"vqascore": {"weight": 2}, "clipscore": {"weight": -0.5}},
        odds={"vqascore": {"weight": 1, "output": "logit"}},
        share={
            "judge": {"weight": 1, "subtract": 1, "divide_by": 4},
            "clipscore": {"weight": 2, "subtract": -1},
        },
    )

    assert pytest.approx((-40 / 26, 0.6 + 40 / 26)) == found["reward"].range
    assert (-0.5, 2.5) == found["against"].range
    assert (-inf, inf) == found["odds"].range
    assert (0, 1 + 4) == found["share"].range
    assert "1·(judge - 1)/4 + 2·(clipscore + 1)" == found["share"].formula


def test_a_composite_needs_what_its_parts_need_and_reads_the_prompt_if_one_does():
    """In the words of `GET /models`."""
    weight = {"weight": 1}
    found = {
        name: (composite.needs, composite.reads_prompt)
        for name, composite in made(
            both={"clip_i": weight, "refclipscore": weight, "vqascore": weight},
            one={"clip_i": weight},
            none={"vqascore": weight},
        ).items()
    }

    assert {
        "both": ("references and the option reference_texts", True),
        "one": ("references", False),
        "none": ("", True),
    } == found


def test_a_table_among_the_options_of_a_part_is_its_digest_in_the_formula():
    """Not a text of 64 questions; a name stays one."""
    table = Checklist(questions=["a?"], weights=[2])
    options = with_tables(ChecklistOptions, ChecklistOptions.tables | {"b": table}, "demo", inline=True)
    parts = [
        CompositePart(replace(checklist, options=options), options(checklist=each), 1, 1)
        for each in (table, "b")
    ]

    assert [f"1·checklist(checklist={each})" for each in (table.digest, "b")] == [
        part.formula for part in parts
    ]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"vqascore": {"clipscore": {"weight": 1}}}, r"composites\.vqascore: there is a metric of that name"),
        ({"Reward": {"clipscore": {"weight": 1}}}, r"composites\.Reward: a name must match"),
        ({"reward": {}}, r"composites\.reward: the table is empty"),
        (
            {"reward": {"bleu": {"weight": 1}}},
            r"composites\.reward\.bleu: there is no such metric; there are vqascore, \w+, ",
        ),
        (
            {"a": {"clipscore": {"weight": 1}}, "b": {"a": {"weight": 1}}},
            r"composites\.b\.a: is a composite itself",
        ),
        (
            {"reward": {"clipscore": {"weight": 1, "sclae": "cosine"}}},
            r"composites\.reward\.clipscore\.sclae: ",
        ),
        ({"reward": {"clipscore": {"weight": 1, "scale": "log"}}}, r"composites\.reward\.clipscore\.scale: "),
        (
            {"reward": {"clipscore": {"weight": 1, "frames": "mean"}}},
            r"composites\.reward\.clipscore\.frames: ",
        ),
        (
            {"reward": {"hpsv2": {"weight": 1}}},
            r"composites\.reward\.hpsv2: no model .* role clip; metrics\.hpsv2",
        ),
    ],
)
def test_a_composite_that_cannot_be_served_is_refused(tables, told):
    """One line that names the place."""
    with pytest.raises(SettingsError, match=f"^{told}") as wrong:
        made(**tables)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("{}", r"weight: Field required"),
        ("{weight = 0}", r"weight: .*must not be 0"),
        ("{weight = nan}", r"weight: .*finite"),
        ("{weight = 1, divide_by = 0}", r"divide_by: .*must not be 0"),
        ("{weight = 1, subtract = inf}", r"subtract: .*finite"),
        ("{weight = 1, scale = 'log'}", r"scale: "),
    ],
)
def test_a_wrong_part_of_a_profile_is_one_line(tmp_path, part, told):
    """It names the file, the composite and the key."""
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[models.clip]\nfamily = "fake"\n[composites.reward]\nclipscore = {part}\n')

    with pytest.raises(
        SettingsError, match=rf"profile\.toml: composites\.reward\.clipscore\.{told}"
    ) as wrong:
        load_settings(profile, {})
    assert "\n" not in str(wrong.value)


def test_a_variable_may_set_a_part(tmp_path):
    """As every other setting."""
    profile = tmp_path / "profile.toml"
    profile.write_text('[models.clip]\nfamily = "fake"\n[composites.reward]\nclipscore = {weight = 1}\n')
    settings = load_settings(profile, {"SCOREGATE_COMPOSITES__REWARD__CLIPSCORE__WEIGHT": "0.25"})

    assert 0.25 == settings.composites["reward"]["clipscore"].weight


def with_a_video(**parts):
    """The composites of a profile that has VideoAlign."""
    tree = {name: {"family": "fake", "role": name} for name in ("clip", "videoalign")}
    tables = {name: {"weight": weight} for name, weight in parts.items()}
    metrics = {"videoalign": {"model": "videoalign"}}
    settings = Settings.model_validate({"models": tree, "metrics": metrics, "composites": {"reward": tables}})
    known = configured(own(), settings)
    return composites(known, settings, assign(known, settings))["reward"]


def test_parts_score_all_frames_together_or_none_does():
    """Heads of one model may be weighed; a metric of single frames beside them is refused."""
    found = with_a_video(**{"videoalign.motion": 0.5, "videoalign.text": 2})

    assert found.options.together
    with pytest.raises(SettingsError, match=r"composites\.reward: some parts score each frame, and others"):
        with_a_video(**{"videoalign.motion": 0.5, "clipscore": 2})


def test_a_sum_has_the_worst_cache_status_of_its_parts_and_names_the_part_of_a_warning():
    """It is as new as its newest part."""
    parts = made(reward={"vqascore": {"weight": 2}, "clipscore": {"weight": 1}})["reward"].parts
    results = {"vqascore": Score(0.5, {}, "hit", ("odd",)), "clipscore": Score(0.25, {}, "miss", ("even",))}
    found = total(parts, results)

    assert (1.25, "miss") == (found.value, found.cache)
    assert ["vqascore: odd", "clipscore: even"] == [note.text for note in found.notes]


def test_the_standard_error_of_a_sum_is_that_of_its_independent_parts():
    """Each with its factor; 0 without samples."""
    parts = made(reward={"vqascore": {"weight": 2, "divide_by": 4}, "clipscore": {"weight": -1}})[
        "reward"
    ].parts
    results = {"vqascore": Score(0.5, {}, error=0.6), "clipscore": Score(0.25, {}, error=0.4)}

    assert 0.5 == pytest.approx(total(parts, results).error)
    assert 0 == total(parts, {name: Score(0.5, {}) for name in results}).error


def test_a_composite_uses_what_its_parts_use_with_their_options():
    """Optional roles, the pictures beside the image, and the direction if all parts have it."""
    parts = {"gecko": {"weight": 1}, "judge": {"weight": 1, "rubric": "editing"}}
    found = made(both=parts)["both"]
    lower = CompositePart(Metric("less", found.score, direction="lower is better"), MetricOptions(), 1.0, 1.0)

    assert (("vqa",), ("questions", "nli"), ("source",)) == (found.roles, found.may_use, found.uses)
    assert CompositeDetails is found.details
    assert "higher is better" == found.direction
    assert "lower is better" == composite("less_too", {"less": lower}, ()).direction


def test_a_part_without_a_question_llm_lacks_it():
    """Requests bring question sets for metrics, and none for parts; a plug-in may have no such option."""
    models = ("clip", "vqa", "picks")
    asks = CompositePart(
        Metric("asks", made(reward=REWARD)["reward"].score, may_use=("questions",)), MetricOptions(), 1, 1
    )
    said = (
        "composites.reward.dsg: no model is configured for the role questions, and the part has no"
        " question_set: only prompts whose question sets were imported can be scored"
    )

    assert (said,) == made(models, reward={"dsg": {"weight": 1}})["reward"].lacks
    assert () == made((*models, "questions"), reward={"dsg": {"weight": 1}})["reward"].lacks
    assert lack("here", asks, {}).startswith("here: no model is configured")
