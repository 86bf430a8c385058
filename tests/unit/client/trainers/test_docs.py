"""docs/trainers/: what the pages have in common."""

from scoregate.trainers.reward import Reward
from tests.support.pages import page


def test_every_page_for_training_asks_for_the_log_odds():
    """As the guide says, since they are nobody's default."""
    asked = {
        "flow-grpo.md": '"vqascore_logit": t2i_score_logit',
        "verl-omni.md": "vqascore.logit=true",
        "flow-factory.md": "logit: true",
        "trl.md": "logit=True",
    }

    assert not Reward().logit
    assert "never the default" in page("guides/rl-reward.md")
    assert "set `logit=True`" in page("guides/rl-reward.md")
    for name, text in asked.items():
        assert text in page(f"trainers/{name}")
