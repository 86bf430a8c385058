"""The layers of the code: imports go down only, and in no circle."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import ROOT, import_statements, parsed

# From the highest to the lowest.
LAYERS = (
    *("service/process", "service/web", "service/wiring", "service/decisions", "service/scoring"),
    *(
        "service/metrics",
        "service/questions",
        "service/images",
        "service/serving",
        "service/observability",
        "service/core",
    ),
    *("models/families", "models/checkpoints", "models/core", "models/images"),
)


def modules() -> dict[str, Path]:
    """Every module of the service and the models, by name."""
    found = {}
    for path in [*(ROOT / "service").rglob("*.py"), *(ROOT / "models").rglob("*.py")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path, known: Collection[str] = MODULES, tops: Collection[str] = ()) -> Iterator[str]:
    """Those *known* modules, and those of the packages *tops*, that a module imports, wherever in it."""
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inside]
        else:
            continue
        yield from (name for name in names if name in known or name.partition(".")[0] in tops)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    return {name: set(imports(path)) - {name} for name, path in MODULES.items()}


@pytest.fixture(scope="module")
def arrows(graph) -> set[tuple[str, str]]:
    """The pairs of folders of which the first imports the second."""
    pairs = {(folder(module), folder(imported)) for module, found in graph.items() for imported in found}
    return {(importing, imported) for importing, imported in pairs if importing != imported}


def folder(module: str) -> str:
    """Return the folder of a module's file."""
    return str(MODULES[module].parent.relative_to(ROOT))


def layer(folder: str) -> int:
    """Return the number of a folder's layer, 0 for the highest.  What lies above all folders has none."""
    return LAYERS.index("/".join(folder.split("/")[:2]))


def test_nothing_is_imported_from_a_higher_layer(arrows):
    """A folder of `service` or `models` is a layer; only the version lies in `service` itself."""
    upwards = [
        (importing, imported)
        for importing, imported in arrows
        if "/" in importing and "/" in imported and layer(imported) < layer(importing)
    ]

    assert [] == upwards


def test_no_two_folders_import_each_other(arrows):
    """But for a folder and those inside it."""
    both = [(a, b) for a, b in arrows if a < b and (b, a) in arrows]

    assert [] == [(a, b) for a, b in both if not b.startswith(f"{a}/")]


def test_no_import_leads_back_to_where_it_started(graph):
    """Modules without unvisited imports are taken away until none is left; a circle would stay."""
    left = {module: set(found) for module, found in graph.items()}
    while ready := [module for module, found in left.items() if not found & left.keys()]:
        for module in ready:
            del left[module]

    assert [] == sorted(left)


def client_modules() -> dict[str, Path]:
    """Every module of the client, by name."""
    root = ROOT / "client/src"
    paths = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in paths.items()}


def imported_by_name(path: Path) -> Iterator[str]:
    """The modules of the service in calls of `import_module`."""
    for call in ast.walk(parsed(path)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "import_module":
            text = ast.unparse(call.args[0]).strip("'")
            yield from [text] if re.match(r"(service|models|scoregate_server)\b", text) else []


def client_imports() -> dict[str, set[str]]:
    """What each module of the client imports, of the client and of the service."""
    names, found = client_modules(), {}
    for name, path in names.items():
        inside = {*imports(path, {*names, *MODULES}, {"service", "models"}), *imported_by_name(path)}
        found[name] = inside - {name, *(name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1))}
    return found


# From the highest to the lowest; a module that is in none is of the client itself, the lowest.
OF_THE_CLIENT = ("cli", "bench", "report", "replay", "evaluation")


def test_the_command_stands_above_the_page_and_the_page_above_the_evaluation():
    """What is above may import what is below, never the other way; trainers stand beside them."""

    def place(module: str) -> int:
        top = f"{module}.".split(".")[1]
        return OF_THE_CLIENT.index(top) if top in OF_THE_CLIENT else len(OF_THE_CLIENT)

    upwards = [
        (module, imported)
        for module, found in client_imports().items()
        for imported in found
        if imported.startswith("scoregate") and place(imported) < place(module)
    ]

    assert [] == upwards


def test_no_arguments_of_the_command_line_reach_what_scores_and_evaluates():
    """Functions take settings, so that a notebook calls them without a command line."""
    outside = {name: path for name, path in client_modules().items() if not name.startswith("scoregate.cli")}
    found = {(name, each) for name, path in outside.items() for each in imports(path, (), {"argparse"})}

    assert set() == found
    assert [] == [name for name, path in outside.items() if "Namespace" in code(path)]


# Arguments about what is printed, and another name of the address.
OF_THE_COMMAND_LINE = {"--json", "--format", "--plot", "--host"}


def test_what_a_command_takes_is_a_setting_of_its_function():
    """Its file declares no other argument by hand; that of `bench` has what benchmarks say of their data."""
    declared = {
        call.args[0].value
        for path in (ROOT / "client/src/scoregate/cli").glob("*.py")
        if path.stem not in ("arguments", "main", "bench")
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument"
        if call.args and isinstance(call.args[0], ast.Constant)
    }

    assert OF_THE_COMMAND_LINE == declared


def test_no_import_of_the_client_leads_back_to_where_it_started():
    """A folder's own `__init__` is not counted: it names what the folder offers."""
    left = client_imports()
    while ready := [module for module, found in left.items() if not found & left.keys()]:
        for module in ready:
            del left[module]

    assert [] == sorted(left)


def test_a_figure_is_imported_without_the_others():
    """The package of evaluation imports none of its files, so that a benchmark has only what it uses."""
    package = ROOT / "client/src/scoregate/evaluation/__init__.py"

    assert [] == [*imports(package, tops={"scoregate"})]


def test_the_service_and_the_client_do_not_import_each_other():
    """But for `scoregate.load`, and the replay of published answers by the formulas that `/score` calls."""
    of_the_service = {
        module
        for module, found in client_imports().items()
        if any(not each.startswith("scoregate") for each in found)
    }
    of_the_client = [
        module for module, path in MODULES.items() if [*imports(path, {"scoregate"}, {"scoregate"})]
    ]

    assert {"scoregate.local", "scoregate.replay.ratings", "scoregate.replay.verdicts"} == of_the_service
    assert [] == of_the_client


def test_a_metric_is_named_in_its_own_file_alone():
    """
    Everything else is derived from its declaration; files about its questions may have its name.

    A metric may be called as its role is, and a table of settings as its metric.  Published files have words
    of their own, and a scale may have the name of the paper that it is from.
    """
    from service.metrics.common.registry import own

    elsewhere = (
        "service.questions.exchange.",
        "service.metrics.clipscore",
        "service.core.settings.tree",
    )
    roles = {role for metric in own().values() for role in metric.all_roles}
    for name in own().keys() - roles:
        places = [
            module
            for module, path in MODULES.items()
            if says(path, name) and not module.endswith(f".{name}") and not module.startswith(elsewhere)
        ]
        assert [] == places, name


def says(path: Path, name: str) -> bool:
    """
    Whether the code of a file has *name* as a word.

    Imports of that question style do not count, since metrics share them.
    """
    text = code(path).replace(f"from service.questions.styles.{name} import", "")
    return re.search(rf"\b{name}\b", text) is not None


@cache
def code(path: Path) -> str:
    """The text of a file without docstrings, which compare metrics, and without descriptions of options."""
    tree, text = parsed(path), path.read_text("utf-8")
    said = [docstring_of(node) for node in ast.walk(tree)]
    said += [
        ast.get_source_segment(text, word.value) or ""
        for word in ast.walk(tree)
        if isinstance(word, ast.keyword) and word.arg == "description"
    ]
    for each in filter(None, said):
        text = text.replace(each, "")
    return text


def docstring_of(node: ast.AST) -> str:
    """The docstring of a module, a class or a function as it stands in the file."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    return ast.get_docstring(node, clean=False) or ""


def test_no_name_of_a_module_is_defined_twice():
    """The second definition would replace the first one, also for those who read that."""
    twice = {
        f"{module}.{name}"
        for module, path in MODULES.items()
        for name, count in Counter(defined(path)).items()
        if count > 1
    }

    assert not twice


def defined(path: Path) -> Iterator[str]:
    """The names of the definitions and assignments at the top of a module, each as often as it is there."""
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id
