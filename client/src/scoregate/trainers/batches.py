"""Items with encoded pictures, split into requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scoregate.errors import BadImage
from scoregate.images import encoded
from scoregate.items import Item
from scoregate.trainers.encoding import in_form
from scoregate.trainers.pictures import pictures

MAX_BYTES = 16 * 2**20  # of the pictures in a request; the service accepts 64 MiB by default


def items_of(
    images: Any,
    prompts: Sequence[str],
    channels: int | None,
    references: Sequence[Any] | None = None,
    encode: str = "raw",
) -> list[Item | BadImage]:
    """
    Return an item for each picture, or the error of its encoding.

    Raises:
        ValueError, TypeError: *images* are not pictures, or *prompts* not as many texts.
    """
    files = [in_a_file(image, encode) for image in pictures(images, channels=channels)]
    related = (
        [[]] * len(files) if references is None else [in_a_file(list(each), encode) for each in references]
    )
    if isinstance(prompts, str) or len(files) != len(prompts):
        count = "one text" if isinstance(prompts, str) else len(prompts)
        raise ValueError(f"there must be a prompt for each of {len(files)} pictures, and there is {count}")
    if wrong := [type(prompt).__name__ for prompt in prompts if not isinstance(prompt, str)]:
        raise TypeError(f"a prompt is text, not {wrong[0]}")
    # NumPy's strings are made plain
    return [item_of(str(prompt), *both) for prompt, *both in zip(prompts, files, related, strict=True)]


def item_of(prompt: str, file: Any, references: Any) -> Item | BadImage:
    """Return an item, or the error of one of its pictures."""
    broken = next((each for each in (file, references) if isinstance(each, BadImage)), None)
    return broken or Item(prompt, file, references=references)


def in_a_file(image: Any, encode: str) -> Any:
    """Encode a picture, or each frame of a list; return the error if it fails."""
    if isinstance(image, BadImage):
        return image
    if isinstance(image, (list, tuple)):
        frames = [in_a_file(frame, encode) for frame in pictures(image)]
        return next((frame for frame in frames if isinstance(frame, BadImage)), frames)
    try:
        return in_form(encoded(image), encode)
    except BadImage as error:
        return error


def size_of(item: Any) -> int:
    """Return the number of bytes of an item's pictures."""
    frames = item.image if isinstance(item.image, list) else [item.image]
    return sum(map(len, (*frames, *item.references)))


def in_batches(indices: Sequence[int], items: Sequence[Any], most: int) -> Iterator[list[int]]:
    """Yield *indices* in runs of at most *most* items and `MAX_BYTES`; a larger picture is alone."""
    batch: list[int] = []
    held = 0
    for index in indices:
        size = size_of(items[index])
        if batch and (len(batch) == most or held + size > MAX_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(index)
        held += size
    if batch:
        yield batch
