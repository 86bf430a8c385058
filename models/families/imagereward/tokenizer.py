"""The tokenizer of bert-base-uncased, from the checkpoint's directory."""

from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer

from models.checkpoints.pretrained import Unknown, check_words
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.families.imagereward.layout import VOCABULARY

LENGTH = 35  # most tokens of a prompt, with [CLS] and [SEP]; from the released code


def load_tokenizer(directory: Path, rows: int) -> Tokenizer:
    """
    Load the tokenizer, thread-safe and with truncation to the model's length.

    BLIP's own two words, [DEC] and [ENC], are not added: no score has them.

    Args:
        rows: number of embeddings.

    Raises:
        CheckpointError: the file is missing, broken, or does not fit the embeddings.
    """
    path = next((directory / name for name in VOCABULARY if (directory / name).is_file()), None)
    if path is None:
        raise CheckpointError(
            f"{directory}: neither {' nor '.join(VOCABULARY)}; copy that of"
            " google-bert/bert-base-uncased there"
        )
    try:
        tokenizer = read_tokenizer(path)
        [first, *_, last] = tokenizer.encode("a").tokens
    except Exception as exc:  # tokenizers raises many kinds for a broken file
        raise CheckpointError(f"{path}: cannot be loaded: {in_short(exc)}") from exc
    if (first, last) != ("[CLS]", "[SEP]"):
        raise CheckpointError(f"{path}: not BERT's: it puts texts between {first} and {last}")
    check_words(path, tokenizer.get_vocab_size(), rows)
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a prompt is text
    tokenizer.enable_truncation(LENGTH)
    return tokenizer


def unknown_token(tokenizer: Tokenizer) -> Unknown:
    """Return BERT's unknown token."""
    special = [tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")]
    return Unknown(tokenizer.token_to_id("[UNK]"), frozenset(filter(None, special)))


def read_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer in either format."""
    if path.suffix == ".json":
        return Tokenizer.from_file(str(path))
    return Tokenizer.from_str(BertWordPieceTokenizer(str(path), lowercase=True).to_str())
