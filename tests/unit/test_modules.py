"""
Names and folders of modules: the rules of CONTRIBUTING.md, each with its exceptions.

A test also fails for an exception that is none any more.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.modules import MODULES, PACKAGES, modules_in, types_of
from tests.support.paths import ROOT, parsed

PARTICIPLE = re.compile(
    r"\w+(?<!e)ed|built|done|found|given|gone|held|kept|known|left|lent|lost|made|read|seen|sent|shown|taken"
    r"|told|written"
)
NAMED_BY_PARTICIPLES = {
    "scoregate.bench.generators.wise_verified",  # the authors' name of the benchmark
    "models.checkpoints.pretrained",  # what `from_pretrained` of transformers loads
    "service.web.dialects.pickled",  # the dialect of pickles
}

# Folders with fewer than three things.
SMALL_FOLDERS = {
    "scoregate.replay",  # the only part of the client that imports the service
    "scoregate.trainers.comfyui",  # ComfyUI loads a folder
}


def test_a_module_is_named_by_a_noun():
    """No `held`, `kept`, `known`, `shown`, and no other past participle."""
    participles = {name for name in MODULES if PARTICIPLE.fullmatch(name.rpartition(".")[2])}

    assert NAMED_BY_PARTICIPLES == participles


def test_no_function_of_a_module_is_called_just_read_or_load():
    """`scoregate.load` is, and the handler of `POST /models/{name}/load`, an operation."""
    found = {
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in {"read", "load"}
    }

    assert {"service.web.routes.models.load", "scoregate.local.load"} == found


@pytest.mark.parametrize("package", ["models", "service", "scoregate"])
def test_no_two_public_types_of_a_package_have_one_name(package):
    """A reader of `Network`, `Pair` or `Row` need not look which of them is imported."""
    assert {} == {name: modules for name, modules in types_of(package).items() if len(modules) > 1}


def test_a_folder_holds_at_least_three_things():
    """Files and folders count, except for `__init__.py`; a family of models is one plug point."""
    small = {
        name
        for name, path in MODULES.items()
        if path.name == "__init__.py" and not name.startswith("models.families.")
        if len([each for each in path.parent.iterdir() if not each.name.startswith(("_", "."))]) < 3
    }

    assert SMALL_FOLDERS == small


SUBJECTLESS = re.compile(
    "ADD|AGAIN|AHEAD|ALIKE|ALONE|ALSO|AT_ONCE|AWAY|BEFORE|BEHIND|BOTH|COMMON|DEEP|EACH|EARLY|EMPTY|ENOUGH|FEW|FIRST"
    "|HALF|LARGE|LARGEST|LAST|LATE|LEAST|LONG|LONGEST|MANY|MORE|MOST|MUCH|NOISY|OFTEN|OPEN|OTHER|PAST|SAME|SHORT"
    "|SHORTEST|SMALL|SPARE|TRIES|TWICE|TWO|UNSENT|WORST"
)
WITH_A_SUBJECT = {
    "ADVANCED",  # a group of skills of two benchmarks, beside BASIC
    "QUOTED",  # the pattern of what stands in quotes
}


WITH_LOADTEST = MODULES | modules_in(ROOT / "loadtest")


def constants_in(path: Path) -> dict[str, str]:
    """Return the expression of each constant of a module, by its name."""
    return {
        target.id: ast.unparse(node.value)
        for node in parsed(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for target in getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(target, ast.Name) and target.id.isupper()
    }


def test_a_constant_that_is_imported_has_its_name_alone_in_its_folder():
    """A reader of `UNREADABLE` need not look which file's it is; one and the same value may stand twice."""
    imported = {
        (node.module, name.name)
        for path in WITH_LOADTEST.values()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    values = defaultdict(dict)
    for module, path in WITH_LOADTEST.items():
        for name, value in constants_in(path).items():
            values[path.parent.relative_to(ROOT), name][module] = value

    assert {} == {
        key: found
        for key, found in values.items()
        if len({*found.values()}) > 1 and any((module, key[1]) in imported for module in found)
    }


def test_a_constant_has_its_subject():
    """A number is `MIN_FRAMES`, not `LEAST`; nor is a constant one participle, such as `COMPUTED`."""
    found = {
        f"{module}.{name}"
        for module, path in MODULES.items()
        for name in constants_in(path)
        if SUBJECTLESS.fullmatch(name) or ("_" not in name and PARTICIPLE.fullmatch(name.lower()))
    }

    assert WITH_A_SUBJECT == {name.rpartition(".")[2] for name in found}, sorted(found)


def classes_below(ends: tuple[str, ...]) -> dict[str, str]:
    """Return the module of each class of the client that has a base class whose name ends so."""
    return {
        node.name: module
        for module, path in MODULES.items()
        if module.startswith("scoregate")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
        if any(ast.unparse(base).rpartition(".")[2].endswith(ends) for base in node.bases)
    }


def test_an_exception_of_the_client_ends_in_error():
    """As those of Python do; that of every base class does, too, so no chain of classes is missed."""
    found = classes_below(("Error", "Exception"))

    assert {"ScoregateError", "InputError", "UsageError"} < found.keys()
    assert {} == {name: module for name, module in found.items() if not name.endswith("Error")}


def test_what_a_caller_catches_as_the_client_s_error_lives_in_one_module():
    """`scoregate.errors`; another exception never leaves its part of the client."""
    ours = tuple(
        node.name for node in parsed(MODULES["scoregate.errors"]).body if isinstance(node, ast.ClassDef)
    )

    assert {"scoregate.errors"} == {*classes_below(ours).values()}


FLAG = re.compile(r"(?<![-\w`])--[a-z]")


def test_an_error_outside_the_command_line_names_no_flag():
    """A caller in Python has arguments; `errors.named` is shown as a flag by the command line."""
    found = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        if module.startswith("scoregate") and not module.startswith("scoregate.cli")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Raise) and "MissingPartError" not in ast.unparse(node)  # text of a page
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and FLAG.search(text.value)
    ]

    assert [] == found


NAMED_PICTURE = {
    "service.core.settings.dialects.max_pictures",  # a setting
    "scoregate.evaluation.versus.pictures",  # a field of JSON
}
WITHOUT_PICTURE = {**PACKAGES, "demo": ROOT, "loadtest": ROOT}


def names_defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names of classes, functions, arguments, variables and attributes that a module defines."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_a_job_is_never_a_call():
    """What a model gets is a call; on its way through queues and batches it is a job."""
    named = re.compile(r"\bcalls?: (?:\w+\[)*Job\b")
    found = {
        f"{module}: {name}"
        for module, path in modules_in(ROOT / "service").items()
        for name in named.findall(path.read_text("utf-8"))
    }

    assert set() == found


@pytest.mark.parametrize("package", WITHOUT_PICTURE)
def test_code_says_image_and_never_picture(package):
    """No module, class, function, argument, variable or field is named by "picture", the word of prose."""
    found = {
        f"{module}.{name}"
        for module, path in modules_in(WITHOUT_PICTURE[package] / package).items()
        for name in (*names_defined(parsed(path)), module.rpartition(".")[2])
        if "picture" in name.lower()
    }

    assert {name for name in NAMED_PICTURE if name.startswith(f"{package}.")} == found
