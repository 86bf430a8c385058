"""docs/trainers/: what the pages have in common."""

import inspect

from scoregate.trainers import Reward, diffusers, verl_omni
from scoregate.trainers.comfyui import nodes
from tests.support.pages import page


def test_log_odds_are_the_default_where_the_guide_recommends_them():
    """In training, and not where a person sets a threshold."""
    assert Reward().logit
    assert inspect.signature(verl_omni.compute_score).parameters["logit"].default
    assert "2. **Use log-odds**, the default of `Reward`" in page("guides/rl-reward.md")
    assert not diffusers.INTERACTIVE.logit
    assert not nodes.ScoregateScore().scorer("vqascore", "").logit
