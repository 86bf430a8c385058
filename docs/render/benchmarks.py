"""`benchmarks.md`: what `scoregate bench` computes, and what each benchmark's module says of it."""

from collections.abc import Iterator
from importlib import import_module

from docs.render.figures import console
from docs.render.markdown import code, join, rest, table
from scoregate.bench import BENCHMARKS, Declaration, benchmark, data, grades, suite
from scoregate.bench.benchmark import Benchmark

INTRO = """
# All benchmarks

[How to run one](../benchmarks.md) is on another page, and each one's options are on that of the
[command](cli.md). The examples use files of `tests/golden/examples` and
`tests/golden/evaluation`.

On invented answers the figures equal those of the authors' formulas to 1e-6. Except for `cvtg2k`, the
authors' code was also run on the same answers, for `kris` that of BAGEL, with equal figures; for `tiif` also
on the released answers of five generators. No published table was reproduced from pictures.
"""
# What several benchmarks have in common, and the module whose docstring says it.
SHARED = {
    "Of generators": benchmark,
    "With a judge": grades,
    "Of metrics": data,
    "A suite and its report": suite,
}
HEADS = ["name", "compares", "model of the paper", "prompts", "pictures of a prompt", "what it is"]


def page() -> str:
    """Return the page: all benchmarks, and a section for each."""
    sections = (part for declaration in BENCHMARKS.values() for part in section(declaration))
    shared = (part for title, module in SHARED.items() for part in (f"## {title}", rest(module.__doc__)))
    return join(INTRO, table(HEADS, map(row, BENCHMARKS.values())), *shared, *sections)


def row(declaration: Declaration) -> list[str]:
    """Return the row of a benchmark."""
    linked = f"[`{declaration.name}`](#{declaration.name})"
    benchmark = declaration.benchmark
    if not isinstance(benchmark, Benchmark):
        return [linked, "metrics", "", "", "", declaration.help]
    paper = benchmark.paper
    prompts = str(paper.prompts) if paper.prompts else "those of the data"
    return [linked, "generators", code(paper.model), prompts, str(paper.images), declaration.help]


def section(declaration: Declaration) -> Iterator[str]:
    """Yield the section of a benchmark: what its module's docstring says, and its example."""
    module = import_module(declaration.module)
    yield f"## {declaration.name}"
    yield rest(module.__doc__)
    yield console("bench", declaration.name)
