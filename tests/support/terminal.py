"""A stream that is a terminal, and keeps what is written to it."""

import io


class Terminal(io.TextIOWrapper):
    """Text in memory."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def isatty(self) -> bool:
        """Return True."""
        return True

    def getvalue(self) -> str:
        """Return all that was written."""
        content: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return content.decode()
