"""Ray in this process: modules in its place, whose calls run one after the other."""

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Row = dict[str, Any]


class RayActorError(Exception):
    """The error of a process that was lost."""


class RayData(ModuleType):
    """
    The module `ray.data`.

    Attributes:
        requests: the arguments of each `map_batches`, with the number of blocks.
        calls: the class or function of each call, and its rows.
        fault: raised after the first row.
        done: called with the class or function of each call, and its result.
    """

    def __init__(self) -> None:
        super().__init__("ray.data")
        self.requests: list[dict[str, Any]] = []
        self.calls: list[tuple[Any, Sequence[Row]]] = []
        self.fault: BaseException | None = None
        self.done: Callable[[Any, Row], None] = lambda of, found: None

    def from_items(self, rows: Sequence[Row], override_num_blocks: int) -> "Rows":
        return Rows(self, rows, override_num_blocks)

    @staticmethod
    def ActorPoolStrategy(**sizes: int) -> dict[str, int]:
        return sizes


class Rows:
    """Rows, and the call that takes them in batches."""

    def __init__(self, data: RayData, rows: Sequence[Row], blocks: int) -> None:
        self._data, self._rows, self._blocks = data, rows, blocks

    def map_batches(self, of: Any, *, batch_size: int, **request: Any) -> "Rows":
        self._data.requests.append({"batch_size": batch_size, **request, "blocks": self._blocks})
        given, more = request.get("fn_constructor_args", ()), request.get("fn_args", ())
        self._of, self._size = of, batch_size
        self._call = of(*given) if isinstance(of, type) else lambda columns: of(columns, *more)
        return self

    def iter_rows(self) -> Iterator[Row]:
        for start in range(0, len(self._rows), self._size):
            some = self._rows[start : start + self._size]
            self._data.calls.append((self._of, some))
            found = self._call({name: [row[name] for row in some] for name in some[0]})
            self._data.done(self._of, found)
            for cells in zip(*found.values(), strict=True):
                yield dict(zip(found, cells, strict=True))
                if self._data.fault:
                    raise self._data.fault


def ray_here(patch: pytest.MonkeyPatch, gpus: int = 0) -> RayData:
    """Put the modules in Ray's place, in a cluster of *gpus*."""
    ray, data = ModuleType("ray"), RayData()
    ray.__spec__ = ModuleSpec("ray", None)
    vars(ray).update(
        data=data,
        exceptions=SimpleNamespace(RayActorError=RayActorError),
        cluster_resources=lambda: {"CPU": 8.0, **({"GPU": float(gpus)} if gpus else {})},
        init=lambda **settings: None,
        shutdown=lambda: None,
    )
    patch.setitem(sys.modules, "ray", ray)
    patch.setitem(sys.modules, "ray.data", data)
    return data
