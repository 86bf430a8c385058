"""The tokens of answers, as the server of a VLM tells them."""

from dataclasses import dataclass

from models.core.contract import ModelError, Post, UpstreamError

MAX_KNOWN = 10_000  # texts whose tokens are remembered
BLANK = " \n\t▁ĠĊ"  # what a token that is nothing but space is written with


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's token ids, and the first of them that is more than a space, None where all are spaces."""

    ids: tuple[int, ...]
    first: int | None


class ServerTokens:
    """
    Tokens of texts; the server is asked once for each.

    Args:
        model: the name that the server knows the model by.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._known: dict[str, Tokens | None] = {}

    async def of(self, label: str, whole: bool, post: Post) -> int | None:
        """
        The token that stands for *label*; None where the server doesn't tell, and its text must do.

        Raises:
            ModelError: *label* is to be one token *whole*, and is not.
            UpstreamError: the server doesn't tell, and a text would not show how *label* begins.
        """
        if label not in self._known:
            tokens = await self._ask(label, post)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[label] = tokens
        else:
            tokens = self._known[label]
        if tokens is None:
            if not whole:
                raise UpstreamError("has no /tokenize, so that it cannot be known how an answer begins")
            return None
        if len(tokens.ids) != 1 if whole else tokens.first is None:
            raise ModelError(f"the answer has {len(tokens.ids)} tokens in this model; it must have one")
        return tokens.ids[0] if whole else tokens.first

    async def _ask(self, label: str, post: Post) -> Tokens | None:
        """The tokens of *label*; None where the server has no such route."""
        body = {"model": self._model, "prompt": label, "add_special_tokens": False, "return_token_strs": True}
        try:
            told = await post("../tokenize", body)
        except UpstreamError as error:
            if error.status not in (404, 405):
                raise
            return None
        ids, texts = told.get("tokens"), told.get("token_strs")
        if not isinstance(ids, list) or any(type(id) is not int for id in ids):
            raise UpstreamError("returned no tokens")
        if not isinstance(texts, list) or len(texts) != len(ids):
            texts = ids  # an older server, which writes no tokens: none of them is known to be a space
        said = [id for id, text in zip(ids, texts, strict=True) if str(text).strip(BLANK)]
        return Tokens(tuple(ids), next(iter(said), None))
