"""
Rows of a batch: questions about the same images share their tokens as far as they are the same.

A row begins with a trunk, the chat up to its last image.  Behind it is a tree of the rest of all chats about
these images, with the labels' tokens, in depth-first order:

    <system> <image> Is there a -- dog? <end> -- Yes
                                 `- red
                                      `- cat? <end>

A token sees those on its way to the root.  In this order, those are the tokens before it whose subtree has
not ended: a row needs one number for each token, and no square mask.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from models.families.vl_inputs import Patches
from models.families.vlm_answers import Answers, Tokens


@dataclass(frozen=True, slots=True)
class LabelledChat:
    """
    A question as tokens.

    Attributes:
        images: patches by the digest of each image, in the order of the chat.
        trunk: ids up to the last image.
        rest: ids after it.
        labels: ids of each label.
    """

    images: Sequence[tuple[str, Patches]] = field(repr=False)
    trunk: Tokens
    rest: Tokens
    labels: Sequence[Tokens]
    answers: Answers

    @property
    def paths(self) -> list[Tokens]:
        """The ids after the trunk whose next token is of interest; the last id of a label has none."""
        return [(*self.rest, *label[:-1]) for label in self.labels]

    @property
    def shared(self) -> tuple[str, int]:
        """A key of the images and the trunk, and the number of their patches and tokens."""
        key = " ".join([*(digest for digest, _ in self.images), str(hash(self.trunk))])
        return key, len(self.trunk) + sum(len(patches.pixels) for _, patches in self.images)

    @property
    def cost(self) -> int:
        """The number of patches and tokens."""
        _, shared = self.shared
        return shared + len(self.rest) + sum(len(label) - 1 for label in self.labels)


@dataclass(frozen=True, slots=True)
class Tree:
    """
    Paths with common beginnings, each token once, in depth-first order.

    Attributes:
        ids: the tokens.
        depths: the number of tokens before each on its way.
        ends: where the subtree of each ends, exclusive.
        places: the places of the tokens of each path.
    """

    ids: list[int]
    depths: list[int]
    ends: list[int]
    places: Mapping[Tokens, Tokens]


def tree(paths: Iterable[Tokens]) -> Tree:
    """Merge the beginnings of *paths*; in their sorted order, those that share one are neighbours."""
    ids, depths, ends = list[int](), list[int](), list[int]()
    way, last, places = list[int](), Tokens(), dict[Tokens, Tokens]()
    for path in sorted(set(paths)):
        shared = common(last, path)
        for place in way[shared:]:
            ends[place] = len(ids)
        del way[shared:]
        for depth in range(shared, len(path)):
            way.append(len(ids))
            ids.append(path[depth])
            depths.append(depth)
            ends.append(0)
        last, places[path] = path, tuple(way)
    for place in way:
        ends[place] = len(ids)
    return Tree(ids, depths, ends, places)


def common(first: Tokens, second: Tokens) -> int:
    """Return the length of the common beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


Wanted = tuple[int, int]
"""The place of a token in its row, and the token whose log-probability after it is needed."""


@dataclass(frozen=True, slots=True)
class Row:
    """
    All chats about the same images.

    Attributes:
        images: digests in the order of the chat.
        ids: tokens of the trunk and of the tree.
        ends: where the subtree of each token ends, exclusive.
        positions: (3, tokens) in time, height and width.
        wanted: for each chat, by its number in the batch, what is needed of each label.
    """

    images: Sequence[str]
    ids: Sequence[int]
    ends: Sequence[int]
    positions: torch.Tensor = field(repr=False)
    wanted: Mapping[int, Sequence[Sequence[Wanted]]]

    @property
    def branches(self) -> bool:
        """True if a token does not see all tokens before it."""
        return any(end != len(self.ids) for end in self.ends)


def rows(chats: Sequence[LabelledChat], pad: int, merged: int) -> list[Row]:
    """
    Return the rows of a batch.

    Args:
        pad: id of a token of an image.
        merged: patches that are one token, in height and in width.
    """
    alike = dict[tuple[tuple[str, ...], Tokens], list[int]]()
    for number, chat in enumerate(chats):
        alike.setdefault((tuple(digest for digest, _ in chat.images), chat.trunk), []).append(number)
    return [
        row(images, {number: chats[number] for number in numbers}, pad, merged)
        for (images, _), numbers in alike.items()
    ]


def row(images: Sequence[str], chats: Mapping[int, LabelledChat], pad: int, merged: int) -> Row:
    """Return the row of *chats*, by their numbers, about *images*."""
    first, *_ = chats.values()
    before, grown = len(first.trunk), tree(path for chat in chats.values() for path in chat.paths)
    start, next_ = positions(first.trunk, pad, [patches.grid for _, patches in first.images], merged)
    after = (torch.tensor(grown.depths) + next_).expand(3, -1)
    wanted = {}
    for number, chat in chats.items():
        places = [grown.places[path][len(chat.rest) - 1 :] for path in chat.paths]
        wanted[number] = [
            [(before + place, token) for place, token in zip(way, label, strict=True)]
            for way, label in zip(places, chat.labels, strict=True)
        ]
    whole = before + len(grown.ids)
    return Row(
        images,
        [*first.trunk, *grown.ids],
        [whole] * before + [before + end for end in grown.ends],
        torch.cat([start, after], 1),
        wanted,
    )


def positions(
    trunk: Tokens, pad: int, grids: Sequence[tuple[int, int, int]], merged: int
) -> tuple[torch.Tensor, int]:
    """
    Return positions (3, tokens) in time, height and width, and the first one after them.

    The tokens of a text count up in all three; those of an image have one time, and their own row and column.
    """
    parts, place, next_ = [], 0, 0
    for _, high, wide in grids:
        first = trunk.index(pad, place)
        parts.append(line(next_, first - place))
        next_ += first - place
        high, wide = high // merged, wide // merged
        sides = torch.meshgrid(torch.arange(1), torch.arange(high), torch.arange(wide), indexing="ij")
        parts.append(torch.stack(sides).flatten(1) + next_)
        next_ += max(high, wide)
        place = first + high * wide
    parts.append(line(next_, len(trunk) - place))
    return torch.cat(parts, 1), next_ + len(trunk) - place


def line(start: int, count: int) -> torch.Tensor:
    """Return the positions of the tokens of a text."""
    return torch.arange(start, start + count).expand(3, -1)
