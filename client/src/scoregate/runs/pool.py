"""Processes of a Ray cluster that each load the models of a command, and take rows of Ray Data."""

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import scoregate
from scoregate.errors import InputError, NoResultError, named
from scoregate.local import Service, server
from scoregate.runs.batch_settings import Batch
from scoregate.runs.results import RESUME_NOTE
from scoregate.text import complain

SHARD_ATTEMPTS = 4  # attempts for a shard in a run
KEPT_NOTE = f"what is finished is kept, and {RESUME_NOTE}"
STORE = "SCOREGATE_CACHE__QUESTIONS"
MISSING_EXTRA = f"{named('ray')} needs {{}}: pip install './client[ray-data]' in a checkout of Scoregate"


@dataclass(frozen=True)
class WorkerSetup:
    """
    What each process of the cluster needs before it loads the models.

    Attributes:
        folder: the working directory of the command, so that relative paths have one meaning.
        names: the models to load.
        run: a name of this run of the command.
    """

    folder: Path
    names: Sequence[str]
    run: str

    def enter(self) -> None:
        """Change to the folder.  Raises `InputError` if this node has none."""
        try:
            os.chdir(self.folder)
        except OSError as exc:
            raise fault(f"no folder {self.folder}: run the command in a folder that all nodes share") from exc

    def check(self, shard: Path, folder: Path) -> None:
        """Raise `InputError` if this node lacks a shard, or the folder of results."""
        for path, there in ((shard, shard.is_file()), (folder, folder.is_dir())):
            if not there:
                raise fault(f"no {path}: data set and results have to be in folders that all nodes share")

    @contextmanager
    def prepared(self, sets: Sequence[Path]) -> Iterator[None]:
        """Enter the folder; models that are loaded in this context have the question *sets*."""
        self.enter()
        with own_store(self.names, sets):
            yield


def fault(what: str) -> InputError:
    """Return the error of a node that lacks something."""
    return InputError(f"the node {gethostname()} has {what}")


@contextmanager
def own_store(names: Sequence[str], files: Sequence[Path]) -> Iterator[None]:
    """
    Give the models that are loaded in this context a store of their own, with the question sets of *files*.

    It is a new file, unless the profile names a Redis: processes that share a file would wait for each other,
    and on a shared disk its locks may not hold.

    Raises:
        InputError: a file has an invalid set.
    """
    gate, before = server(), os.environ.get(STORE)
    if not gate.settings_for(names, (), "").cache.redis.get("questions"):
        folder = TemporaryDirectory(prefix="scoregate-", ignore_cleanup_errors=True)
        _folders.append(folder)
        os.environ[STORE] = f"sqlite:///{folder.name}/questions.sqlite3"
    try:
        for file in files:
            if refused := gate.import_questions(names, file):
                raise InputError(f"{file}: {refused} question sets are not valid: see the log")
        yield
    finally:
        if before is None:
            os.environ.pop(STORE, None)
        else:
            os.environ[STORE] = before


_folders: list[TemporaryDirectory[str]] = []  # this process keeps them until its end


ERROR = "error"  # the column of an error of a call
EXPECTED_ERRORS = (InputError, NoResultError, scoregate.ScoregateError, OSError)


def with_errors(call: Callable[..., dict[str, list[Any]]]) -> Callable[..., dict[str, list[Any]]]:
    """Return *call* with expected errors as a row: Ray would change their text, and print a traceback."""

    @wraps(call)
    def called(*given: Any) -> dict[str, list[Any]]:
        try:
            return call(*given)
        except EXPECTED_ERRORS as exc:
            return {ERROR: [pickle.dumps(exc)]}

    return called


def checked(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a call; raise its error if it is one."""
    if error := row.get(ERROR):
        raise pickle.loads(error)  # a process of this run wrote it, and Ray itself unpickles its objects
    return row


class Pool:
    """
    The processes of a command on a cluster.

    Args:
        data: the module `ray.data`, connected.
    """

    def __init__(self, data: Any, batch: Batch) -> None:
        ray = import_module("ray")
        self._data, self._errors = data, ray.exceptions
        there = int(ray.cluster_resources().get("GPU", 0))
        gpus = min(there, 1) if batch.actor_gpus is None else batch.actor_gpus
        environment = {name: value for name, value in os.environ.items() if name.startswith("SCOREGATE_")}
        self._sizes = batch.actors or (max(there, 1),) * 2
        self._needs = {"num_gpus": gpus or None, "runtime_env": {"env_vars": environment}}

    def map(
        self, of: Callable[..., Any], given: Sequence[Any], rows: Sequence[Mapping[str, Any]], batch: int = 1
    ) -> Iterator[dict[str, Any]]:
        """
        Yield the rows that *of* returns, in the order in which they are finished.

        Args:
            of: a class whose instances take a batch of rows, in actors of this pool, with the arguments
                *given*; or a function with them, in tasks.  Calls are `with_errors`.
            batch: rows of a call, which Ray repeats if its process is lost.

        Raises:
            NoResultError: Ray gave up.
            Exception: one of `EXPECTED_ERRORS`, of the first call that failed.
        """
        calls = -(-len(rows) // batch)
        parts = self._data.from_items(list(rows), override_num_blocks=calls)
        if isinstance(of, type):
            low, high = (min(size, calls) for size in self._sizes)
            compute = self._data.ActorPoolStrategy(
                min_size=low, max_size=high, max_tasks_in_flight_per_actor=1
            )
            done = parts.map_batches(
                of, batch_size=batch, compute=compute, fn_constructor_args=given, **self._needs
            )
        else:
            done = parts.map_batches(of, batch_size=batch, fn_args=given)
        try:
            yield from map(checked, done.iter_rows())
        except (KeyboardInterrupt, scoregate.ScoregateError, OSError) as exc:
            why = "interrupted" if isinstance(exc, KeyboardInterrupt) else "stopped"
            complain(f"scoregate: {why}: {KEPT_NOTE}")
            raise
        except self._errors.RayActorError as exc:
            why = str(exc).strip().partition("\n")[0]
            raise NoResultError(f"processes of the cluster were lost: {why}; {KEPT_NOTE}") from exc


@contextmanager
def attempt(run: str, shard: Path, file: Path) -> Iterator[None]:
    """
    Score a shard in this context.

    Ray repeats a call whose process ended, without a limit.

    Raises:
        NoResultError: `SHARD_ATTEMPTS` processes of this *run* ended in this context.
    """
    record = file.with_name(f"{file.name}.attempts")
    begun = record.read_text("utf-8").split() if record.exists() else []
    try:
        if begun.count(run) >= SHARD_ATTEMPTS:
            raise NoResultError(f"{shard}: {SHARD_ATTEMPTS} processes ended while they scored this shard")
        record.write_text("\n".join([*begun, run]), "utf-8")
        yield
    finally:
        record.unlink(missing_ok=True)


@contextmanager
def joined(batch: Batch) -> Iterator[Pool]:
    """
    Join or start a cluster.

    Raises:
        InputError: a package is missing, no models are named, or the cluster cannot be joined.
        ServiceConnectionError: there is no cluster at the address.
    """
    try:
        gate = server()
    except ImportError as exc:
        raise InputError(str(exc)) from exc
    with ExitStack() as stack:
        try:
            stack.enter_context(gate.on_cluster(batch.ray))
            data = import_module("ray.data")  # the environment of Ray is set by now
        except gate.FAULTS as exc:
            text = str(exc).replace("runtime.address", named("ray"))
            if isinstance(exc, gate.TEMPORARY_ERRORS):
                raise scoregate.errors.ServiceConnectionError(text) from exc
            raise InputError(MISSING_EXTRA.format("Ray") if "needs Ray" in text else text) from exc
        except ImportError as exc:
            raise InputError(MISSING_EXTRA.format(exc.name)) from exc
        yield Pool(data, batch)


def setup_of(service: Service) -> WorkerSetup:
    """Return where the cluster's processes work.  Raises `InputError` if the service is none of their own."""
    names = service.models
    if not names:
        needs = f"{named('ray')} needs {named('local', 'NAME')}"
        raise InputError(f"{needs}: each process of the cluster loads these models")
    return WorkerSetup(Path.cwd(), names, uuid4().hex)
