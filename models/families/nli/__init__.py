"""
Models that predict whether one text follows from another (NLI), in the role `nli`.

```toml
[models.nli]
family = "transformers_nli"
checkpoint = "/srv/models/deberta-v3-base-mnli"
```

For `gecko`. The model needs a fast tokenizer. Pairs are truncated at 512 tokens, or at the model's length,
with a warning.

* **Classifiers** of text pairs whose `id2label` has `entailment`, such as the MNLI models of BERT, RoBERTa
  or DeBERTa.
* **T5s in TRUE's format** (Honovich et al. 2022), as in the Gecko paper: the probability of `1` as the
  first token after `premise: … hypothesis: …`. The numbers of another T5 are meaningless, which cannot be
  detected.
"""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "transformers_nli",
    role="nli",
    loads="a classifier of text pairs with a label `entailment`, or a T5 in TRUE's format",
    settings=LocalSettings,
    loader="models.families.nli.model:from_settings",
    weights="models.checkpoints.files:safetensors_files",
    signs=Signs(architectures=("ForSequenceClassification",)),
)
