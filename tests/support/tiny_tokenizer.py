"""A tokenizer of tiny checkpoints: characters are words, but for some."""

from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
CHARACTERS = [chr(code) for code in range(32, 127)]


def make_tokenizer(
    more_special: Sequence[str], words: Sequence[str], characters: Sequence[str] = CHARACTERS
) -> PreTrainedTokenizerFast:
    """
    Return a tokenizer of *characters* and of *words*, of which the first that matches is read.

    The ids are those of `SPECIAL`, *more_special*, *words* and *characters*, in this order.
    """
    listed = [*SPECIAL, *more_special, *words, *characters]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(listed)}, unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()  # without spaces between words
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("|".join([*words, r"[\s\S]"])), "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=[*more_special],
    )
