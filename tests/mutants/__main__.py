"""
Change the code of each area in one place at a time, and print how many of the changes its tests notice.

It goes on where it was stopped: verdicts are in build/mutants/AREA.  A change that was noticed counts as long
as its function is the same, and the others are tried again with the tests as they are now.  To count anew,
remove the folder.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
MUTMUT = Path(sys.executable).with_name("mutmut")
LINKS = ("service", "tests", "demo", "docs", "pyproject.toml")
KILLED, HUNG = (1, 3), (-24, 24, 36, 152, 255)  # exit codes, as mutmut reads them
ENOUGH = 0.95
# What takes 3 * (10 s + the time of the function's tests) hangs: much, for a machine that has other work.
SETTINGS = "[mutmut]\nsource_paths=service\ntimeout_multiplier=3\ntimeout_constant=10\n"


def folder_of(name: str, area: dict[str, list[str]]) -> Path:
    """A folder in which mutmut finds the code, the tests and what it is to do with them."""
    folder = ROOT / "build/mutants" / name
    folder.mkdir(parents=True, exist_ok=True)
    for link in LINKS:
        if not (folder / link).exists():
            (folder / link).symlink_to(ROOT / link)
    lists = {
        "also_copy": ["demo", "docs"],
        "only_mutate": area["files"],
        "do_not_mutate": area.get("except", []),
        "pytest_add_cli_args_test_selection": area["tests"],
        "pytest_add_cli_args": area.get("options", []),
    }
    written = ("\n  ".join((f"{key}=", *values)) for key, values in lists.items() if values)
    (folder / "setup.cfg").write_text(SETTINGS + "\n".join(written) + "\n")
    return folder


def forget_survivors(folder: Path) -> None:
    """Have mutmut try again what was not noticed, with all tests that there are now."""
    (folder / "mutants/mutmut-stats.json").unlink(missing_ok=True)  # which tests call which function
    for meta in (folder / "mutants").rglob("*.meta"):
        kept = json.loads(meta.read_text())
        codes = kept["exit_code_by_key"]
        kept["exit_code_by_key"] = {
            key: code if code in KILLED + HUNG else None for key, code in codes.items()
        }
        meta.write_text(json.dumps(kept))


def verdicts(folder: Path) -> Iterator[tuple[str, str, int | None]]:
    """The file, the name and the exit code of the tests, of each mutant."""
    for meta in sorted((folder / "mutants").rglob("*.meta")):
        for mutant, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            yield str(meta.relative_to(folder / "mutants").with_suffix("")), mutant, code


def change(folder: Path, file: str, mutant: str) -> tuple[str, str, str]:
    """What a mutant changes: the file, and the lines before and after."""
    with chdir(folder):
        lines = get_diff_for_mutant(mutant, path=file).splitlines()[2:]
    before, after = (" ".join(x[1:].strip() for x in lines if x.startswith(sign)) for sign in "-+")
    return file, before, after


def plain(line: str) -> str:
    """A line without the `strict` of `zip`, which tells nothing where both are as long by construction."""
    return re.sub(r",\s*(strict=\w+)?\)", ")", line)


def noticed(name: str, area: dict[str, list[str]], equivalent: set[tuple[str, str, str]]) -> float:
    """Run one area and print what came of it.  Returns the share that was noticed."""
    folder = folder_of(name, area)
    forget_survivors(folder)
    subprocess.run([MUTMUT, "run"], cwd=folder, check=True)
    found = [*verdicts(folder)]
    killed, hung = (sum(code in codes for *_, code in found) for codes in (KILLED, HUNG))
    alive = [change(folder, file, mutant) for file, mutant, code in found if code not in KILLED + HUNG]
    survived = [each for each in alive if each not in equivalent and plain(each[1]) != plain(each[2])]
    for file, before, after in survived:
        print(f"{file}\n  - {before}\n  + {after}")
    share = (killed + hung) / (killed + hung + len(survived))
    counts = (
        f"{killed} killed, {hung} hung, {len(survived)} survived, {len(alive) - len(survived)} equivalent"
    )
    print(f"{name}: {len(found)} mutants, {counts}: {share:.1%} noticed", flush=True)
    return share


def main(names: list[str]) -> int:
    """Run all areas, or those that are named.  Returns 1 where too few changes are noticed."""
    areas = tomllib.loads((HERE / "areas.toml").read_text())
    notes = tomllib.loads((HERE / "equivalent.toml").read_text())["equivalent"]
    equivalent = {(note["file"], note["before"], after) for note in notes for after in note["after"]}
    shares = [noticed(name, areas[name], equivalent) for name in names or areas]
    return 0 if min(shares) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
