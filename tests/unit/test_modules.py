"""
Names, importers and folders of modules: the rules of CONTRIBUTING.md, each with its exceptions.

A test also fails for an exception that is none any more.  `docs/test_architecture.py` holds the length of
files.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.support.paths import ROOT, parsed
from tests.unit.test_layers import imports

PACKAGES = {"service": ROOT, "models": ROOT, "scoregate": ROOT / "client/src"}
# Their imports count, and they are not checked themselves.
IMPORTERS = ("demo", "loadtest", "benchmarks", "scoregate_server.py")

PARTICIPLE = re.compile(
    r"\w+(?<!e)ed|built|done|found|given|gone|held|kept|known|left|lent|lost|made|read|seen|sent|shown|taken"
    r"|told|written"
)
NAMED_BY_PARTICIPLES = {
    "scoregate.cli.bench.wise_verified",  # the authors' name of the benchmark
    "models.checkpoints.pretrained",  # what `from_pretrained` of transformers loads
    "service.web.dialects.pickled",  # the dialect of pickles
}

# Modules whose only importer lies in their own folder, by the reason why they are not merged into it.
SINGLE_IMPORTERS: Mapping[str, set[str]] = {
    "a format of pictures": {
        f"models.images.formats.{name}" for name in ("bmp", "gif", "jpeg", "png", "webp")
    },
    "a dialect": {
        *(f"service.web.dialects.{name}" for name in ("chat_judge", "cosmos_rl", "flow_factory", "openrlhf")),
        *(f"service.web.dialects.{name}" for name in ("rerank", "slime", "unirl")),
        *(f"service.web.dialects.decisions.{name}" for name in ("openai", "sglang", "systemone")),
        "models.families.decisions.bodies",
    },
    "a store or a cache": {
        "service.questions.stores.redis",
        "service.questions.stores.sqlite",
        "service.serving.redis_cache",
    },
    "a subcommand, or a part of it that needs no web server": {
        *(f"service.process.{name}" for name in ("deploy", "exchange", "launch", "ready"))
    },
    "imported by the package for its public names": {
        "models.core.outcomes.numbers",
        "scoregate.trainers.comfyui.nodes",
    },
    "with its importer more than 400 lines": {
        "models.families.clip_flant5.t5",
        "service.images.fetcher",
        "service.serving.ray.replicas",
        "service.web.server.multipart",
    },
    "parts of one topic, together more than 400 lines": {
        *(f"scoregate.report.{name}" for name in ("comparisons", "means")),
        "scoregate.trainers.watch.step",
        *(f"service.web.dialects.pickled.{name}" for name in ("calls", "reader", "requests")),
    },
    "pure functions, tested without torch": {"models.families.clip_flant5.groups"},
    "another topic than its importer": {
        *(f"service.process.doctor.{name}" for name in ("machine", "servers")),  # checks, not their order
        "service.core.fault",  # the base class apart from the list of codes
        "service.images.limits",  # memory of pixels, not of downloads
        "service.observability.otlp",  # the export of spans, not their recording
    },
    "imported in Ray's processes": {
        f"service.serving.ray.{name}" for name in ("backend", "deployment", "replica")
    },
}

# Folders with fewer than three things.
SMALL_FOLDERS = {
    "scoregate.replay",  # the only part of the client that imports the service
    "scoregate.trainers.comfyui",  # ComfyUI loads a folder
}


def modules() -> dict[str, Path]:
    """Return every module of the service, the models and the client, by name."""
    found = {}
    for top, root in PACKAGES.items():
        for path in (root / top).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def importing() -> Iterator[Path]:
    """Yield the files whose imports count."""
    yield from MODULES.values()
    for name in IMPORTERS:
        yield from (ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name]


def loaded_by_name() -> set[str]:
    """Return the modules in strings, `package.module:attribute`, and all of f"package.{name}"."""
    found = set()
    for path in importing():
        for node in ast.walk(parsed(path)):
            match node:
                case ast.JoinedStr(values=[ast.Constant(value=str(start)), ast.FormattedValue()]):
                    found |= {name for name in MODULES if f"{name.rpartition('.')[0]}." == start}
                case ast.Constant(value=str(text)) if ":" in text:
                    found.add(text.partition(":")[0])
    return found


@cache
def single_importers() -> dict[str, Path]:
    """Return the modules that one file of their own folder imports, and no other file, with that file."""
    importers: dict[str, set[Path]] = defaultdict(set)
    for path in importing():
        for name in set(imports(path, MODULES)):
            importers[name].add(path)
    return {
        name: file
        for name, [file, *others] in importers.items()
        if not others and file.parent == MODULES[name].parent and MODULES[name].name != "__init__.py"
    }


def test_a_module_is_named_by_a_noun():
    """No `held`, `kept`, `known`, `shown`, and no other past participle."""
    participles = {name for name in MODULES if PARTICIPLE.fullmatch(name.rpartition(".")[2])}

    assert NAMED_BY_PARTICIPLES == participles


def test_no_function_of_a_module_is_called_just_read_or_load():
    """`scoregate.load` and `read` are, and the handler of `POST /models/{name}/load`, an operation."""
    found = {
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in {"read", "load"}
    }

    assert {"service.web.routes.models.load", "scoregate.local.load", "scoregate.data.datasets.read"} == found


def test_a_module_with_a_single_importer_is_merged_into_it():
    """A module that is loaded by its name is a plug point: a family, a command, a benchmark."""
    single = single_importers().keys() - loaded_by_name()

    assert set(chain.from_iterable(SINGLE_IMPORTERS.values())) == single


def test_no_module_is_excepted_for_two_reasons():
    counted = Counter(chain.from_iterable(SINGLE_IMPORTERS.values()))

    assert not [name for name, count in counted.items() if count > 1]


@pytest.mark.parametrize("name", sorted(SINGLE_IMPORTERS["with its importer more than 400 lines"]))
def test_what_is_too_long_to_be_merged_is_too_long(name):
    files = MODULES[name], single_importers()[name]

    assert sum(path.read_bytes().count(b"\n") for path in files) > 400


def test_a_folder_holds_at_least_three_things():
    """Files and folders count, except for `__init__.py`; a family of models is one plug point."""
    small = {
        name
        for name, path in MODULES.items()
        if path.name == "__init__.py" and not name.startswith("models.families.")
        if len([each for each in path.parent.iterdir() if not each.name.startswith(("_", "."))]) < 3
    }

    assert SMALL_FOLDERS == small
