"""The manifest of results: the command, the data set, each run with its provenance, and the question sets."""

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import scoregate
from scoregate.data.datasets import Dataset
from scoregate.data.rows import UNUSABLE
from scoregate.errors import InputError
from scoregate.records import check_regular, json_object_in
from scoregate.results import is_number
from scoregate.runs.batch_settings import DataSource
from scoregate.runs.plan import Line, Plan
from scoregate.runs.results import ResultsFile
from scoregate.settings import VERSION
from scoregate.text import complain

FORM = 1
NAMES = (  # settings that say how a data set is read
    "image_column",
    "prompt_column",
    "frames_column",
    "option_column",
    "matrix",
    "any_path",
    "prompt",
    "prompts",
    "metrics_column",
    "no_prompt",
    "image_part",
    "prompt_from_name",
    "grid",
)
OPTIONAL = (
    "image_column",
    "frames_column",
    "prompt",
    "prompts",
    "metrics_column",
    "image_part",
    "prompt_from_name",
    "sha256",
    "grid",
)  # texts of a data set
TEXT_LIST_FIELDS = ("option_column", "sweep", "more")  # lists of texts of a data set
BLOCK_BYTES = 2**20
FACTS = ("service", "preprocessing", "libraries")  # `GET /models` returns them
MODEL_FACTS = ("recipe", "dtype", "device", "hardware")

Sets = Mapping[str, Mapping[str, Any]]  # `GET /questions/{id}` returns them


def beside(results: Path) -> Path:
    """Return the path of the manifest of *results*."""
    return results.with_name(f"{results.name}.manifest.json")


class Manifest(AbstractContextManager["Manifest"]):
    """
    The manifest of one run; its exit adds the run to those of the file, also after an exception.

    Args:
        source: the settings that *dataset* is read by.
        clock: seconds, at any origin.

    Attributes:
        asked: scored rows; *cached* is the number of them without a model call.
        begun_s: when the run began, by *clock*.

    Raises:
        InputError: another file has its name.
    """

    def __init__(
        self,
        dataset: Dataset,
        source: DataSource,
        results: ResultsFile,
        served: Mapping[str, Any],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._path = beside(results.out)
        self._runs = runs_of(results.out)
        self._began, self._clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), clock
        self.begun_s = clock()
        self._head = head_of(dataset, source, results)
        self._used = used(served, results.plan)
        self._sets = sets_of(results.out)
        self.asked = self.cached = 0

    def answered(self, result: scoregate.Result) -> None:
        """Count a result, and note the options of its request."""
        self._used |= resolved(result)
        self.asked += 1
        self.cached += bool(result.scores) and all(
            result.cache.get(metric) == "hit" for metric in result.scores
        )

    def keep_sets(self, client: scoregate.Client, ids: Collection[str]) -> None:
        """Add the question sets with these *ids*; sets that came with a row are in no store."""
        try:
            for id in sorted({*ids} - self._sets.keys()):
                if found := stored(client, id):
                    self._sets[id] = content_of(found)
        except scoregate.ScoregateError as exc:  # the scores are there
            complain(f"the manifest lacks question sets, run again to add them: {exc}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        policy = self._used.get("policy")
        if self.asked or not self._runs or (policy and policy != self._runs[-1].get("policy")):
            run = {"began": self._began, "seconds": self._clock() - self.begun_s, "client": VERSION}
            self._runs.append({**run, "requested": self.asked, "cached": self.cached, **self._used})
        written = self._path.with_name(f"{self._path.name}.new")
        whole = {**self._head, "runs": self._runs} | ({"question_sets": self._sets} if self._sets else {})
        content = json.dumps(whole, indent=2, ensure_ascii=False)
        written.write_text(f"{content}\n", "utf-8", errors="backslashreplace")
        os.replace(written, self._path)


def head_of(dataset: Dataset, source: DataSource, results: ResultsFile) -> dict[str, Any]:
    """
    Return what all runs of a file of results have in common; paths are relative to its folder.

    A table has its hash.  Shards have none, since they would be read once more, and each line has the hash of
    its picture.
    """
    path = dataset.path.resolve()
    folder, said = results.out.resolve().parent, {**vars(source), "orient": results.plan.orient}
    if said.get("prompts"):
        said["prompts"] = os.path.relpath(said["prompts"], folder)
    return {
        "manifest": FORM,
        "dataset": {
            "path": os.path.relpath(path, folder),
            **({"sha256": digest_of(path)} if path.is_file() and not dataset.shards else {}),
            **{name: said[name] for name in (*NAMES, "orient") if said.get(name)},
            **({"more": [os.path.relpath(each, folder) for each in dataset.more]} if dataset.more else {}),
            "sweep": [
                f"{name}={os.path.relpath(file, folder)}" for name, _, file in map(parted, source.sweep)
            ],
        },
        "results": results.out.name,
        "metrics": list(results.plan.metrics),
        "options": dict(results.plan.options),
    }


def parted(sweep: str) -> tuple[str, str, str]:
    """Split the argument of a sweep into the option, the sign and the file."""
    return sweep.partition("=")


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = sha256()
    check_regular(file)
    with file.open("rb") as opened:
        while block := opened.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def used(served: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the provenance in an answer of `GET /models`: of the plan's models, composites and policy."""
    facts = {name: served[name] for name in FACTS if name in served}
    known = {model["name"]: model for model in served["models"]}
    described = {
        name: {"model": label, **{fact: known[name][fact] for fact in MODEL_FACTS if known[name].get(fact)}}
        for name, label in plan.models.items()
    }
    entries = {name: served["metrics"][name] for name in plan.metrics}
    composites = {name: entry["parts"] for name, entry in entries.items() if "parts" in entry}
    decided = {"policy": plan.policy.as_json()} if plan.policy else {}
    return {**facts, "composites": composites, "models": described, **decided}


def resolved(result: scoregate.Result) -> dict[str, Any]:
    """Return the options of the result's request with their defaults; nothing from a service without them."""
    options = result.provenance.get("options")
    return {"options": options} if options else {}


def sets_of(results: Path) -> dict[str, Any]:
    """Return the question sets of *results* by id; none without a manifest.  Raises as `read_manifest`."""
    path = beside(results)
    return dict(read_manifest(path).get("question_sets", {})) if path.exists() else {}


def runs_of(results: Path) -> list[dict[str, Any]]:
    """Return the runs that gave *results*; none without a manifest.  Raises as `read_manifest`."""
    path = beside(results)
    return list(read_manifest(path)["runs"]) if path.exists() else []


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a manifest.  Raises `InputError` if the file is none."""
    content = json_object_in(path)
    if content is None or content.get("manifest") != FORM or not is_manifest(content):
        raise InputError(f"{path}: this is no manifest of `scoregate batch` or `report`")
    return content


def source_in(path: Path, content: Mapping[str, Any]) -> DataSource:
    """Return the data set of a manifest, with the content of its file at *path*."""
    folder, said = path.resolve().parent, content["dataset"]
    given = {name: said[name] for name in NAMES if said.get(name) is not None}
    if "prompts" in given:
        given["prompts"] = folder / given["prompts"]
    sweep = [f"{name}={folder / file}" for name, _, file in map(parted, said.get("sweep", ()))]
    more = tuple(folder / each for each in said.get("more", ()))
    return DataSource(dataset=folder / said["path"], more=more, sweep=sweep, **given)


def is_manifest(content: Mapping[str, Any]) -> bool:
    """Return True if *content* has the parts that the command reads, with their types."""
    dataset, runs = content.get("dataset"), content.get("runs")
    return (
        isinstance(dataset, dict)
        and is_dataset(dataset)
        and is_text(content.get("results"))
        and isinstance(content.get("metrics"), list)
        and all(isinstance(metric, str) for metric in content["metrics"])
        and isinstance(content.get("options"), dict)
        and all(isinstance(options, dict) for options in content["options"].values())
        and isinstance(content.get("question_sets", {}), dict)
        and all(map(is_set, content.get("question_sets", {}).values()))
        and isinstance(runs, list)
        and all(map(is_run, runs))
    )


def is_dataset(content: Mapping[str, Any]) -> bool:
    """Return True if *content* says which data set was scored, with the arguments of the command."""
    return (
        is_text(content.get("path"))
        and is_text(content.get("prompt_column", ""))
        and all(is_text(content.get(name) or "") for name in OPTIONAL)
        and all(isinstance(content.get(name, []), list) for name in TEXT_LIST_FIELDS)
        and all(is_text(each) for name in TEXT_LIST_FIELDS for each in content.get(name, []))
        and all(isinstance(content.get(name, False), bool) for name in ("matrix", "any_path"))
    )


def is_text(content: Any) -> bool:
    """Return True for a text that may be the name of a file or a column."""
    return isinstance(content, str) and not UNUSABLE.search(content)


def is_run(content: Any) -> bool:
    """Return True if *content* is a run with the parts that the commands read."""
    return (
        isinstance(content, dict)
        and all(type(content.get(name)) is int for name in ("requested", "cached"))
        and is_number(content.get("seconds"))
        and isinstance(content.get("service", {}), dict)
    )


def stored(client: scoregate.Client, id: str) -> scoregate.QuestionSet | None:
    """Return the set that the service has under *id*, if any.  Raises `ScoregateError`."""
    try:
        return client.question_set(id)
    except scoregate.errors.UnknownQuestionSetError:
        return None


def ids_of(lines: Iterable[Line]) -> set[str]:
    """Return the ids of the sets that *lines* name."""
    return {id for line in lines for id in line.get("question_sets", {}).values()}


def content_of(found: scoregate.QuestionSet) -> dict[str, Any]:
    """Return a set as `scoregate-server questions import` reads it."""
    content: dict[str, Any] = {"prompt": found.prompt, "style": found.style, "id": found.id}
    content |= {"questions": list(found.questions), "provenance": dict(found.provenance)}
    return content | ({"unasked": list(found.unasked)} if found.unasked else {})


def absent(client: scoregate.Client, sets: Sets, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return those of *sets* with one of *ids* that the service does not have.  Raises `ScoregateError`."""
    return {id: sets[id] for id in sorted(sets.keys() & set(ids)) if stored(client, id) is None}


def tell_parts(path: Path, lines: Iterable[Line], missing: Sets) -> None:
    """Print how to import the *missing* sets of parts of composites, which cannot be sent along."""
    places = {
        place
        for line in lines
        for place, id in line.get("question_sets", {}).items()
        if "." in place and id in missing
    }
    if places:
        text = (
            f"the service lacks question sets of {', '.join(sorted(places))}, which a request cannot name;"
            f" import them first: jq -c '.question_sets[]' {shlex.quote(str(path))} > sets.jsonl"
            " && scoregate-server questions import sets.jsonl"
        )
        complain(text)


def is_set(content: Any) -> bool:
    """Return True if *content* has the parts of a set that the commands read."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("prompt"), str)
        and isinstance(content.get("questions"), list)
    )
