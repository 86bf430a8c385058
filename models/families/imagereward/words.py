"""The words of bert-base-uncased, from the checkpoint's directory."""

from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer

from models.core.contract import CheckpointError
from models.core.reason import in_short
from models.families.imagereward.layout import WORDS

LENGTH = 35  # tokens of a prompt that are read, with [CLS] and [SEP]; of the released code


def load_words(directory: Path, rows: int) -> Tokenizer:
    """
    The tokenizer, which cuts texts at the model's length; thread-safe.

    BLIP's own two words, [DEC] and [ENC], are not added: no score has them.

    Args:
        rows: how many words have an embedding.

    Raises:
        CheckpointError: the words are missing, broken, or not those of the embeddings.
    """
    path = next((directory / name for name in WORDS if (directory / name).is_file()), None)
    if path is None:
        raise CheckpointError(
            f"{directory}: neither {' nor '.join(WORDS)}; copy that of google-bert/bert-base-uncased there"
        )
    try:
        words = read_words(path)
        [first, *_, last] = words.encode("a").tokens
    except Exception as exc:  # tokenizers raises many kinds for a broken file
        raise CheckpointError(f"{path}: cannot be loaded: {in_short(exc)}") from exc
    if (first, last) != ("[CLS]", "[SEP]"):
        raise CheckpointError(f"{path}: not BERT's: it puts texts between {first} and {last}")
    if words.get_vocab_size() > rows:
        raise CheckpointError(f"{path}: {words.get_vocab_size()} words, and the embeddings have {rows} rows")
    words.no_padding()
    words.encode_special_tokens = True  # "[SEP]" in a prompt is text
    words.enable_truncation(LENGTH)
    return words


def read_words(path: Path) -> Tokenizer:
    """The tokenizer in either format."""
    if path.suffix == ".json":
        return Tokenizer.from_file(str(path))
    return Tokenizer.from_str(BertWordPieceTokenizer(str(path), lowercase=True).to_str())
