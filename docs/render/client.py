"""`client.md`: the methods of a client, and the settings of a reward, as their docstrings describe them."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from docs.render.declarations import default_of
from docs.render.markdown import code, first_line, inherited, join, rest, table
from scoregate import Client
from scoregate.images import encoded
from scoregate.trainers import Reward, divergence, figures, watch

INTRO = """
# Client and rewards

The [client](../client.md) and the [rewards of trainers](../trainers/README.md) in Python.
`help(scoregate.Client.score)` has the arguments and errors.

## Client

`AsyncClient` has these methods, too, as coroutines or asynchronous generators.
"""
PICTURES = """
## Pictures

What every method takes as a picture, and what is sent of it.
"""
REWARD = """
## Reward

In code or in a trainer's YAML; [what the trainers take](../trainers/README.md#settings).
"""
FIGURES = """
## Figures of a reward

`reward.statistics()` returns those of this process's pictures since its last call:
"""
WATCH = """
## Watch

[`Reward(watch=Watch(…))`](../guides/reward-hacking.md).
"""


def page() -> str:
    """Return the page: a row for each method, and for each setting of a reward."""
    return join(
        INTRO,
        table(["method", "result", "what it does"], methods()),
        PICTURES,
        rest(encoded.__doc__),
        REWARD,
        settings(Reward),
        FIGURES,
        rest(figures.__doc__),
        WATCH,
        settings(watch.Watch),
        rest(watch.__doc__),
        "## Alarm",
        rest(divergence.__doc__),
    )


def settings(kind: type[Any]) -> str:
    """Return the table of the settings of a dataclass."""
    said = inherited(kind)
    rows = [[code(field.name), default_of(field), said[field.name]] for field in fields(kind)]
    return table(["setting", "default", "meaning"], rows)


def methods() -> Iterator[list[str]]:
    """Yield the row of each method, with the arguments that may be given by their place."""
    for name, method in vars(Client).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        signature = inspect.signature(method)
        given = [each for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
        result = str(signature.return_annotation)
        yield [
            code(f"{name}({', '.join(each.name for each in given[1:])})"),
            code(result),
            first_line(method.__doc__),
        ]
