"""Why a pickle is refused, told so that whoever wrote the client knows what to send."""

from collections.abc import Sequence
from typing import Any

from service.errors import Malformed

PLAIN = "a plain dict of lists, str, bytes and numbers"
ADVICE = {
    "numpy": "it holds NumPy objects: send list(map(str, prompts)), and pictures as bytes",
    "torch": "it holds tensors: send each picture as the bytes of a JPEG or PNG file",
    "PIL": "it holds PIL images: send each picture as the bytes of a JPEG or PNG file",
    "_codecs": "it holds bytes in protocol 2 or less: use pickle.dumps(data, protocol=3) or more",
}
MAX_NAME = 100  # characters


def refusal(opcode: str, argument: Any, before: Sequence[Any]) -> Malformed:
    """
    The error for an opcode that is not known here.

    Args:
        argument: the opcode's own.
        before: the last two values before it, which may name what it asks for.
    """
    name = " ".join(part for part in before if type(part) is str)
    if type(argument) is str:
        name = argument
    if opcode not in ("GLOBAL", "INST", "STACK_GLOBAL"):
        return Malformed(f"the pickle must hold {PLAIN}; the opcode {opcode} is refused")
    advice = ADVICE.get(name.split(".")[0].split(" ")[0], f"the opcode {opcode} is refused")
    return Malformed(f"the pickle must hold {PLAIN}, and it names {name[:MAX_NAME]!r}; {advice}")
