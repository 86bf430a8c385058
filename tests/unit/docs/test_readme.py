"""README.md: what the default score is, and commands that exist."""

import json
import re
from math import log

import pytest

from models.core.outcomes import Likelihood
from service.metrics.vqascore import VqaScoreOptions, metric
from tests.support.pages import DOCS, ROOT, rows

README = (ROOT / "README.md").read_text("utf-8")
UNSURE = Likelihood((log(0.24), log(0.999)), log(0.24), log(0.7))


def test_the_default_score_is_the_one_that_the_readme_states():
    """The formula of the metric's declaration, and the two numbers of the example."""
    stated = re.search(r"\*\*The default `vqascore` is (√.*?)\.\*\*", README, re.DOTALL)

    assert stated is not None
    assert metric.formula == stated[1].replace(" ", "")
    assert '0.49 where P("Yes") is 0.24' in README
    assert 0.49 == round(UNSURE.normalized(VqaScoreOptions().normalization), 2)


@pytest.mark.parametrize(
    ("wanted", "score"), [("paper's formula", 0.24 * 0.999), ("alone", 0.24), ("log-odds", log(0.24 / 0.7))]
)
def test_the_other_forms_are_the_options_that_the_readme_names(wanted, score):
    """Each row's options give what its first cell says."""
    [cells] = [cells for cells in rows(README.replace("\\|", "/")) if wanted in cells[0]]
    options = VqaScoreOptions.model_validate(json.loads(cells[1].strip("`")))
    found = UNSURE.logit if options.output == "logit" else UNSURE.normalized(options.normalization)

    assert score == pytest.approx(found)


def test_the_readme_says_what_was_not_measured():
    """A section of its own, so that nobody has to guess."""
    section = README.split("## Status and limits", 1)[1].split("\n## ")[0]

    assert "GPU" in section
    assert "not reproduced" in section
    assert "demo models" in section


def test_every_command_of_make_that_is_named_exists():
    """In the pages, the README and the other files beside it."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`make\s([a-z-]+)", page.read_text("utf-8"))}

    assert {"demo", "test", "serve"} <= named
    assert named <= targets
