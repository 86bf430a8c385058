"""Errors of refused pickles, with advice for the author of the client."""

from typing import Any

from service.core.errors import Malformed

PLAIN = "a plain dict of lists, str, bytes and numbers"
PICTURES = "send each picture as the bytes of a JPEG or PNG file"
NUMPY = "send texts as a list or an array of str, numbers as a list, and pictures as bytes"
ADVICE = {
    "numpy": f"it holds NumPy objects that are no texts: {NUMPY}",
    "torch": f"it holds tensors: {PICTURES}",
    "PIL": f"it holds PIL images: {PICTURES}",
}
MAX_NAME = 100  # characters


def refusal(opcode: str) -> Malformed:
    """Build the error of an unknown opcode."""
    return Malformed(f"the pickle must hold {PLAIN}; the opcode {opcode} is refused")


def refused_name(opcode: str, *parts: Any) -> Malformed:
    """Build the error of a name, in one part or several, in the argument of *opcode* or on the stack."""
    name = " ".join(part[:MAX_NAME] for part in parts if isinstance(part, str))[:MAX_NAME]
    advice = ADVICE.get(name.split(".")[0].split(" ")[0], f"the opcode {opcode} is refused")
    return Malformed(f"the pickle must hold {PLAIN}, and it names {name!r}; {advice}")


def numpy_refusal(what: str) -> Malformed:
    """Build the error of NumPy values that are not texts."""
    return Malformed(f"the pickle holds NumPy's {what}: {NUMPY}")
