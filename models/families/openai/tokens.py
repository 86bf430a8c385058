"""The tokens of answers, from the server of a VLM."""

from dataclasses import dataclass

from models.core.contract import ModelError, Post, UpstreamError

MAX_KNOWN = 10_000  # texts in the cache
BLANK = " \n\t▁ĠĊ"  # characters of a token that is only space


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's token ids, and the first of them that is more than a space; None if all are spaces."""

    ids: tuple[int, ...]
    first: int | None


class ServerTokens:
    """
    A cache of texts' tokens, with one request for each text.

    Args:
        model: its name on the server.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._known: dict[str, Tokens | None] = {}

    async def of(self, label: str, whole: bool, post: Post) -> int | None:
        """
        Return the token that represents *label*; None if the server cannot tokenise, so that its text is
        used.

        Raises:
            ModelError: *label* must be one token *whole*, and is not.
            UpstreamError: the server cannot tokenise, and the first token is needed.
        """
        if label not in self._known:
            tokens = await self._request(label, post)
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

    async def _request(self, label: str, post: Post) -> Tokens | None:
        """Request the tokens of *label*; None if the server has no such route."""
        body = {"model": self._model, "prompt": label, "add_special_tokens": False, "return_token_strs": True}
        try:
            answer = await post("../tokenize", body)
        except UpstreamError as error:
            if error.status not in (404, 405):
                raise
            return None
        ids, texts = answer.get("tokens"), answer.get("token_strs")
        if not isinstance(ids, list) or any(type(id) is not int for id in ids):
            raise UpstreamError("returned no tokens")
        if not isinstance(texts, list) or len(texts) != len(ids):
            texts = ids  # an older server without texts: no token counts as a space
        visible = [id for id, text in zip(ids, texts, strict=True) if str(text).strip(BLANK)]
        return Tokens(tuple(ids), next(iter(visible), None))
