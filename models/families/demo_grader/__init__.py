"""
Models that grade in the demo world, in the role `vqa`: by the yes or no of a CLIP-FlanT5.

```toml
[models.judge]
role = "vqa"
family = "demo_grader"
checkpoint = "demo:clip_flant5"

[metrics.judge]
vqa = "judge"
```

For `judge`. The text in double quotes in a rubric is what the picture should show, and p is the probability
of yes to VQAScore's question about it. A scale of n grades has the binomial distribution of n - 1 trials
with p: from 1 to 5 the mean is 1 + 4p. Of two pictures one is better with the probability that it alone
shows the text. Questions without a quoted text, about an edit, or with several grades are errors.
"""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "demo_grader",
    role="vqa",
    loads="a CLIP-FlanT5, whose yes or no grades whether a picture shows a text, for the demo",
    settings=LocalSettings,
    loader="models.families.demo_grader.model:from_settings",
    planner="models.families.clip_flant5.layout:plan",
)
