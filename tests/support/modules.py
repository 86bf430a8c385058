"""The modules of the service, the models and the client, and the types that they define."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT, parsed

PACKAGES = {"service": ROOT, "models": ROOT, "scoregate": ROOT / "client/src"}


def modules_in(folder: Path) -> dict[str, Path]:
    """Return every module of the package in *folder*, by name."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


# Every module of the service, the models and the client.
MODULES = {name: path for top, root in PACKAGES.items() for name, path in modules_in(root / top).items()}


@cache
def types_of(package: str) -> Mapping[str, list[str]]:
    """Return the modules of *package* that define a public type, by the name of the type."""
    places = defaultdict(list)
    for module, path in MODULES.items():
        if module.partition(".")[0] == package:
            for name in types_defined(parsed(path)):
                if not name.startswith("_"):
                    places[name].append(module)
    return dict(places)


def types_defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes and of other types, `Name = ...`, at the top level of a module."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[*targets]):
                yield from (target.id for target in targets if is_type_name(target))
            case ast.AnnAssign(target=target) if is_type_name(target):
                yield target.id
            case _ if type(node).__name__ == "TypeAlias":  # `type Name = ...` of Python 3.12
                yield node.name.id


def is_type_name(target: ast.expr) -> bool:
    """Return whether *target* is named like a class: `Row`, but neither `ROW` nor a type variable `T`."""
    return isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()
