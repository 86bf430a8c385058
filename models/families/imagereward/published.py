"""The published ImageReward: a repository without its tokenizer, which is BERT's."""

REPOSITORY = "THUDM/ImageReward"
TOKENIZER_REPOSITORY = "google-bert/bert-base-uncased"
