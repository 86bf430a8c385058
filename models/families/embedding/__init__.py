"""
Models that embed sentences, in the role `embedding`.

For `tifa` with `answers: "free_form"`:

```toml
[models.embedding]
family = "sentence_transformer"
checkpoint = "sentence-transformers/all-mpnet-base-v2"
```

Embeddings are means of the last hidden states, at length 1; checkpoints with another pooling or further
layers are rejected. Texts are truncated at 512 tokens, or at the model's length. `family =
"openai_embedding"` calls a server's `POST embeddings` instead.
"""

from models.core.family import Family
from models.core.settings import LocalSettings

FAMILY = Family(
    "sentence_transformer",
    role="embedding",
    loads="a model for sentences",
    settings=LocalSettings,
    loader="models.families.embedding.model:from_settings",
    weights="models.checkpoints.files:safetensors_files",
)
MAX_TOKENS = 512  # a longer text is cut
