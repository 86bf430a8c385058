"""
BLIP for visual question answering (Li et al. 2022), in the role `vqa`.

```toml
[models.vqa]
family = "blip_vqa"
checkpoint = "Salesforce/blip-vqa-capfilt-large"
device = "cuda:0"
dtype = "float32"
```

The model of T2I-CompBench: a BLIP (`BlipForQuestionAnswering`) as transformers publishes it, with
safetensors. Takes one picture a call. A question is read as by BLIP's released code: in lower case, without
`. ! " ( ) * # : ; ~`, cut at 35 tokens, with a warning, and with `[ENC]` as the first token; answers begin
after `[DEC]`. It was trained on plain questions: give `{"question": "{}"}` to `dsg` and `soft_tifa`. With
`bfloat16` only the vision tower is rounded. Pictures are squashed to the size in the checkpoint's
configuration; the authors of T2I-CompBench use 480 x 480 pixels and BLIP's own file of weights, so figures
may differ.
"""

from models.core.family import Family, Signs
from models.core.settings import LocalSettings

FAMILY = Family(
    "blip_vqa",
    role="vqa",
    loads="a BLIP for visual question answering",
    settings=LocalSettings,
    loader="models.families.blip_vqa.model:from_settings",
    weights="models.families.blip_vqa.model:weights",
    signs=Signs(architectures=("BlipForQuestionAnswering",)),
)
