"""
`python -m loadtest.shards`: how fast shards are scored, compared with a list in memory.

Fake models of this process take 2 ms for a sample.  The list is `score_many` of JPEGs of 512².  The shards
have the same pictures, and `scoregate batch` scores them into a folder of results, with all that it does for
each shard.  Rounds alternate, and the share is the median of theirs (at least 0.95).
"""

import argparse
import io
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

import scoregate
from loadtest.corpus import image_files
from scoregate.runs import batch
from scoregate.runs.batch_settings import Batch, dataset_of
from scoregate.runs.results import lines_of

FAKE_PROFILE = """
[models.vqa]
family = "fake"
per_call_ms = 2

[cache]
scores = "off"
questions = "sqlite:///{folder}/questions.sqlite3"
"""
MIN_SHARE = 0.95
GROUP = 100  # rows of a group in Parquet, and of a batch in Arrow, as `datasets` writes pictures
Samples = Sequence[tuple[bytes, str]]


def tar(path: Path, samples: Samples) -> None:
    """Write samples as WebDataset does."""
    with tarfile.open(path, "w") as file:
        for number, (image, prompt) in enumerate(samples):
            for suffix, data in (("jpg", image), ("txt", prompt.encode())):
                header = tarfile.TarInfo(f"{number:06}.{suffix}")
                header.size = len(data)
                file.addfile(header, io.BytesIO(data))


def table(samples: Samples) -> pa.Table:
    """Return samples as rows with the picture in a struct."""
    images = [{"bytes": data, "path": f"{number}.jpg"} for number, (data, _) in enumerate(samples)]
    return pa.table({"image": images, "prompt": [prompt for _, prompt in samples]})


def parquet(path: Path, samples: Samples) -> None:
    """Write samples as `datasets` does."""
    pq.write_table(table(samples), path, row_group_size=GROUP)


def arrow(path: Path, samples: Samples) -> None:
    """Write samples as `save_to_disk` of `datasets` does."""
    rows = table(samples)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=GROUP)


KINDS: Mapping[str, Callable[[Path, Samples], None]] = {"tar": tar, "parquet": parquet, "arrow": arrow}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a target is missed."""
    options = argparse.ArgumentParser(prog="python -m loadtest.shards", description=__doc__)
    options.add_argument("--samples", type=int, default=3000)
    options.add_argument("--shards", type=int, default=3)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    given = options.parse_args(argv)
    rounds = list(measured(given.samples, given.shards, given.rounds, given.kinds))
    print(f"list: {given.samples / median(each['list'] for each in rounds):.0f} samples/s")
    shares = shares_of(rounds)
    for kind, share in shares.items():
        rate = given.samples / median(each[kind] for each in rounds)
        print(f"{kind}: {rate:.0f} samples/s, {share:.2f} of the list")
    return int(min(shares.values()) < MIN_SHARE)


def shares_of(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return by kind the median share of the list's rate."""
    kinds = [kind for kind in rounds[0] if kind != "list"]
    return {kind: median(each["list"] / each[kind] for each in rounds) for kind in kinds}


def measured(count: int, shards: int, rounds: int, kinds: Sequence[str]) -> Iterator[dict[str, float]]:
    """Yield for each round the seconds of the list and of each kind of shards, after a round to warm up."""
    files = image_files("rl")
    samples = [(bytes(bytearray(files[n % len(files)])), f"picture {n}") for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "fake.toml"
        profile.write_text(FAKE_PROFILE.format(folder=folder), "utf-8")
        sources = dict(written(Path(folder), kinds, samples, shards))
        with scoregate.load(str(profile)) as gate:
            for number in range(rounds + 1):
                found = {"list": of_list(gate, samples)}
                found |= {kind: of_shards(gate, source) for kind, source in sources.items()}
                if number:
                    yield found


def written(folder: Path, kinds: Sequence[str], samples: Samples, shards: int) -> Iterator[tuple[str, Path]]:
    """Write the samples in shards of each kind; yield the kind and its folder."""
    for kind in kinds:
        (folder / kind).mkdir()
        for number in range(shards):
            KINDS[kind](folder / kind / f"{number}.{kind}", samples[number::shards])
        yield kind, folder / kind


def of_list(gate: scoregate.Client, samples: Samples) -> float:
    """Return the seconds of a list."""
    began = time.perf_counter()
    failed = sum(bool(result.errors) for result in gate.score_many(samples))
    if failed:
        raise SystemExit(f"{failed} samples have no score")
    return time.perf_counter() - began


def of_shards(gate: scoregate.Client, source: Path) -> float:
    """Return the seconds of the shards in *source*."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        settings = Batch(dataset=source, out=out)
        began = time.perf_counter()
        dataset = dataset_of(settings, settings.names)
        files, _ = batch.score_shards(batch.session_of(gate, settings, dataset), out)
        passed = time.perf_counter() - began
        if any(line["errors"] for line in chain.from_iterable(map(lines_of, files))):
            raise SystemExit("a sample has no score")
    return passed


if __name__ == "__main__":
    sys.exit(main())
