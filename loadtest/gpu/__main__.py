"""
`python -m loadtest.gpu`: measure what the models and the service do on this machine's GPU.

Weights are random, of the real geometry, and made on the device: nothing is downloaded.  Each figure is
written to FILE as soon as it is there; a run that was stopped goes on where it ended.  At the end a table in
Markdown is printed, and stored with a plot next to FILE.  A figure that misses its target is bold and no
failure.  `--bundle DIR` collects what a machine without network needs.
"""

import argparse
import gc
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import torch
import transformers

from loadtest.gpu import decoders, drift, encoders, forward, limits, memory, peers, service, sweep, vllm
from loadtest.gpu.bench import Bench, release
from loadtest.gpu.bundle import HAVE, bundle
from loadtest.gpu.geometry import REAL, TINY
from loadtest.gpu.results import Machine, Results
from loadtest.gpu.steps import Step, run
from loadtest.gpu.table import plot, table

FOLDER = Path(__file__).parents[2] / "build" / "gpu"
PARTS: dict[str, Callable[[Bench], Iterator[Step]]] = {
    "limits": limits.steps,
    "forward": forward.steps,
    "encoders": encoders.steps,
    "decoders": decoders.steps,
    "memory": memory.steps,
    "drift": drift.steps,
    "service": service.steps,
    "vllm": vllm.steps,
    "peers": peers.steps,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen parts, print the table of all that was measured."""
    options = parse(argv)
    if options.bundle:
        bundle(options.bundle, options.have, options.python_version, options.platform)
        return 0
    real = options.geometry == "real"
    if real and not torch.cuda.is_available():
        print("loadtest.gpu: PyTorch finds no CUDA device; --geometry tiny runs on a CPU", file=sys.stderr)
        return 2
    device = torch.device("cuda" if real else "cpu")
    if not real:
        torch.set_num_threads(1)  # threads that wait for each other's cores would take most of the time
    folder = options.results.parent
    results = Results(options.results, machine(device, options.geometry))
    gc.freeze()  # imported objects would make each collection between two steps take half a second
    dtype = "bfloat16" if real else "float32"
    bench = Bench(REAL if real else TINY, device, dtype, folder, results, options.vllm.absolute())
    chosen = {"sweep": sweep.steps} if options.sweep else {name: PARTS[name] for name in options.only}
    run({name: partial(steps, bench) for name, steps in chosen.items()}, results, release)
    gc.unfreeze()
    facts = machine(device, options.geometry)
    show(bench, facts, options.results)
    if options.sweep:
        print("\n".join(["", *(sweep.profile(bench, size, facts["card"]) for size in bench.geometry.flant5)]))
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], help="only these parts")
    parser.add_argument("--geometry", choices=("real", "tiny"), default="real", help="tiny: on a CPU, a test")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON lines; delete it to begin anew")
    parser.add_argument("--sweep", action="store_true", help="try the profile's switches, print the best")
    parser.add_argument(
        "--vllm",
        type=Path,
        metavar="PYTHON",
        default=Path(sys.executable),
        help="that has vLLM; by default this one",
    )
    packed = parser.add_argument_group("for a machine without network")
    packed.add_argument("--bundle", type=Path, metavar="DIR", help="fill DIR, and measure nothing")
    packed.add_argument("--have", nargs="+", default=HAVE, metavar="NAME", help="packages that are there")
    packed.add_argument("--python-version", default="", help="such as 3.12; by default this one")
    packed.add_argument("--platform", default="", help="such as manylinux_2_28_x86_64; by default this one")
    options = parser.parse_args(argv)
    options.results = options.results or FOLDER / f"{options.geometry}.jsonl"
    return options


def machine(device: torch.device, geometry: str) -> Machine:
    """Return the facts that the figures depend on."""
    facts = {"geometry": geometry, "card": platform.machine(), "PyTorch": torch.__version__}
    facts |= {"transformers": transformers.__version__, "Python": platform.python_version()}
    if device.type == "cuda":
        facts |= {"card": torch.cuda.get_device_name(device), "CUDA": str(torch.version.cuda)}
        facts["driver"] = driver()
    return facts


def driver() -> str:
    """Return the version of NVIDIA's driver, as Linux has it."""
    version = Path("/sys/module/nvidia/version")
    return version.read_text().strip() if version.is_file() else "unknown"


def show(bench: Bench, facts: Machine, file: Path) -> None:
    """Print the table, and store it with the plot next to *file*."""
    rows = {part: [*bench.results.of(part)] for part in (*PARTS, "sweep")}
    text = "\n".join([f"{date.today():%d %B %Y} · {next(table(facts, rows))}", *[*table(facts, rows)][1:]])
    print(f"\n{text}\n")
    file.with_suffix(".md").write_text(text + "\n", "utf-8")
    plot(facts["card"], rows, file.with_suffix(".svg"))
    print(f"{file}, and beside it the table (.md) and the plot (.svg)")


if __name__ == "__main__":
    sys.exit(main())
