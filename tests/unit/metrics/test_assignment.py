"""Which model serves which role of a metric: what the settings name, else the role's first model."""

import pytest

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.contract import Metric, Score
from service.metrics.common.registry import assign, own


async def nothing(item, models, options):
    """A coroutine that is never run."""
    return Score(0.0, {})


GECKO = Metric("gecko", nothing, roles=("vqa", "questions"), may_use=("nli",))
METRICS = own() | {"gecko": GECKO, "alone": Metric("alone", nothing)}

ROLES = {"clip": "clip", "other_clip": "clip", "vqa": "vqa", "large": "vqa", "llm": "questions", "nli": "nli"}


def assigned(metrics=None, models=ROLES, **tables):
    tree = {"models": {name: {"family": "fake", "role": role} for name, role in models.items()}}
    return assign(metrics or METRICS, Settings.model_validate({**tree, "metrics": tables}))


def test_a_role_is_served_by_its_first_model():
    """In the order of the profile, for every metric that has the role."""
    found = assigned()

    assert ("vqa", "clip", "llm") == (
        found["vqascore", "vqa"],
        found["clipscore", "clip"],
        found["gecko", "questions"],
    )


def test_a_metric_may_be_given_a_model_for_each_role():
    """Roles that its table leaves out keep the first model."""
    found = assigned(gecko={"vqa": "large", "nli": "nli"})

    assert {"vqa": "large", "questions": "llm", "nli": "nli"} == {
        role: name for (metric, role), name in found.items() if metric == "gecko"
    }
    assert "vqa" == found["vqascore", "vqa"]


def test_the_short_form_names_a_model_in_the_role_that_it_has():
    """`model` stands for the role of the model it names."""
    assert "large" == assigned(vqascore={"model": "large"})["vqascore", "vqa"]
    assert "other_clip" == assigned(clipscore={"model": "other_clip"})["clipscore", "clip"]


def test_a_metric_that_is_its_weights_has_no_model_unless_one_is_named():
    """And the one that is named serves no other metric."""
    assert ("pickscore", "clip") not in assigned()

    only = {"picks": "clip", "vqa": "vqa"}
    found = assigned(models=only, pickscore={"model": "picks"})
    assert "picks" == found["pickscore", "clip"]
    assert ("clipscore", "clip") not in found


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"bleu": {"model": "vqa"}}, r"metrics\.bleu: there is no such metric; there are vqascore, "),
        ({"gecko": {}}, r"metrics\.gecko: the table is empty"),
        ({"gecko": {"ocr": "vqa"}}, r"metrics\.gecko\.ocr: .*its roles are: vqa, questions, nli"),
        ({"gecko": {"vqa": "nobody"}}, r"metrics\.gecko\.vqa: 'nobody'"),
        ({"gecko": {"vqa": "clip"}}, r"metrics\.gecko\.vqa: 'clip'"),
        ({"clipscore": {"model": "vqa"}}, r"metrics\.clipscore\.model: 'vqa'"),
        ({"gecko": {"vqa": "vqa", "model": "large"}}, r"metrics\.gecko: names two models for the role vqa"),
        ({"gecko": {"model": "nobody"}}, r"metrics\.gecko\.model: 'nobody' is not a model that it can use$"),
        ({"alone": {"vqa": "vqa"}}, r"metrics\.alone\.vqa: alone has no such role; it uses no model$"),
    ],
)
def test_a_table_that_names_what_is_not_there_is_refused(tables, named):
    """An unknown metric, role or model, and a model of another role: one line that names the setting."""
    with pytest.raises(SettingsError, match=named):
        assigned(**tables)
