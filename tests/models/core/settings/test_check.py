"""`scoregate-server --check`: what would be loaded, from where and how large, with nothing loaded."""

import re
import shutil

import pytest

from models.core.contract import CheckpointError
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.process.check import check, threads
from service.wiring.load import load_settings
from tests.support.command import never, server
from tests.support.flant5_checkpoints import GOLDEN, configure, golden_copy, golden_weights
from tests.support.machines import FakeMachine

__all__ = ["server"]

XL = {
    "family": "clip_flant5",
    "checkpoint": "zhiqiulin/clip-flant5-xl",
    "revision": "3b4a6b1b618f4e286f5353b5b5147a3ae7d9ec55",
    "dtype": "bfloat16",
    "device": "cuda:0",
}


pytestmark = pytest.mark.usefixtures("hub_cache", "offline")  # an empty cache of the hub, and no sockets


WITHOUT_GPU = FakeMachine(free={"cpu": 16 * 10**9})


def checked(machine=WITHOUT_GPU, **models):
    """The table's rows by model, and what is said of their memory below it."""
    text = check(Settings.model_validate({"models": models}), machine)
    rows, _, rest = text.partition("\n\n")
    _, _, total = rest.partition("\n")
    return {row.split()[0]: row for row in rows.splitlines()[1:]}, total.strip()


def test_each_of_several_devices_has_all_models_on_it():
    """A model on one of them counts there only."""
    several = {key: value for key, value in XL.items() if key != "device"} | {"devices": ["cuda:0", "cuda:1"]}
    _, total = checked(vqa=several, second={**XL, "role": "vqa", "device": "cuda:1"})

    assert total.startswith("Weights: cuda:0 6.3 GB; cuda:1 12.6 GB. Activations come on top.")


@pytest.mark.parametrize(("free", "end"), [(20, "20.0 GB free."), (6, "6.0 GB free: too little.")])
def test_the_weights_on_a_gpu_are_compared_with_its_free_memory(free, end):
    """If it answers; nothing is said of another one."""
    _, total = checked(FakeMachine(free={"cuda:0": free * 10**9}), vqa=XL)

    assert f"cuda:0: 6.3 GB of weights needed, {end}" == total.splitlines()[-1]


def test_the_demo_models_are_measured_by_their_files(server):
    """As the command prints it: exit status 0, one row for each model."""
    status, out, errors = server("--check", load=never, machine=WITHOUT_GPU)

    assert (0, []) == (status, errors)
    lines = out.splitlines()
    tables = ["MODEL", "clip", "vqa", "judge", "questions", "nli", "ocr", "detector"]
    assert [*tables, "Threads:", "Weights:", "Demo", "cpu:"] == [line.split()[0] for line in lines if line]
    assert lines[1].endswith("float32, cpu  7.6 MB")
    assert re.fullmatch(r"Threads: \d+ for each lane decode pictures\. Batches on a CPU .*", lines[-4])
    assert lines[-3] == "Weights: cpu 62.7 MB. Activations come on top."
    assert lines[-1] == "cpu: 62.7 MB of weights needed, 16.0 GB free."


@pytest.mark.parametrize(
    ("cores", "told"),
    [
        (1, "one core."),
        (2, "one core each, those of large models with all 2."),
        (4, "one core each, those of large models with all 4."),
    ],
)
def test_the_cores_of_batches_are_told(cores, told):
    """With one there is one batch at a time."""
    assert (
        threads(3, cores) == f"Threads: 3 for each lane decode pictures. Batches on a CPU compute with {told}"
    )


def test_cores_are_told_where_a_model_computes_on_the_cpu_of_this_machine():
    """Whatever is imported by then: not for a model of a GPU or of another server."""
    remote = {"family": "openai_vlm", "base_url": "http://127.0.0.1:8001/v1", "model": "m"}
    tables = {"cpu": {**XL, "device": "cpu"}, "gpu": XL, "remote": remote}
    machine = FakeMachine(cpus=4)
    told = {
        name: check(Settings.model_validate({"models": {"vqa": table}}), machine)
        for name, table in tables.items()
    }

    assert {"cpu": True, "gpu": False, "remote": False} == {
        name: "compute with one core each, those of large models with all 4." in text
        for name, text in told.items()
    }
    assert all(("Batches on a CPU" in text) == (name == "cpu") for name, text in told.items())


@pytest.mark.parametrize("layout", ["bin", "sharded bin", "safetensors", "sharded safetensors"])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_memory_is_every_number_once_in_the_dtype_it_is_loaded_in(tmp_path, layout, dtype, size):
    """Weights on disk are bfloat16; the shared embedding has four names there."""
    directory = golden_copy(tmp_path / "c", layout=layout)
    weights = {n: t for n, t in golden_weights().items() if "embed_tokens" not in n and t.is_floating_point()}
    expected = sum(tensor.numel() for tensor in weights.values()) * size

    rows, total = checked(vqa={"family": "clip_flant5", "checkpoint": str(directory), "dtype": dtype})
    assert rows["vqa"].endswith(f"{dtype}, cpu  {expected / 1e6:.1f} MB")
    assert str(directory) in rows["vqa"]
    assert total.splitlines()[0] == f"Weights: cpu {expected / 1e6:.1f} MB. Activations come on top."


def test_a_repository_of_the_hub_is_told_as_not_yet_here():
    """With the size that is known of the published one."""
    rows, total = checked(vqa=XL)

    assert f"{XL['checkpoint']}@{XL['revision']}" in rows["vqa"]
    assert "the hub (not in its cache)" in rows["vqa"]
    assert rows["vqa"].endswith("bfloat16, cuda:0  6.3 GB")
    assert total == "Weights: cuda:0 6.3 GB. Activations come on top."


def test_on_ray_each_copy_of_a_model_is_told_by_itself():
    """Its copies may share a GPU, or have one each: Ray decides."""
    vqa = {"family": "clip_flant5", "checkpoint": "demo:clip_flant5", "device": "cuda"}
    models = {"vqa": vqa, "clip": {"family": "open_clip", "checkpoint": "demo:clip", "device": "cuda"}}
    text = check(Settings.model_validate({"models": models, "runtime": {"kind": "ray"}}))

    assert "Weights: cuda, each copy of vqa 8.2 MB; cuda, each copy of clip 7.6 MB." in text


SERVER = {"family": "openai", "base_url": "http://127.0.0.1:8001/v1", "model": "a/b"}


@pytest.mark.parametrize(
    ("used", "line"),
    [
        (None, "16.9 GB with 10.0 GB of the server of questions and 0.6 GB of CUDA, estimated."),
        (
            (1, 24),
            "16.9 GB of 24.0 GB with 10.0 GB of the server of questions and 0.6 GB of CUDA, estimated.",
        ),
        ((12, 24), "18.9 GB of 24.0 GB with 12.0 GB in use now and 0.6 GB of CUDA, estimated."),
        ((20, 24), "26.9 GB of 24.0 GB with 20.0 GB in use now and 0.6 GB of CUDA, estimated: too much."),
    ],
    ids=["no NVML", "not started yet", "running", "too much"],
)
def test_what_else_lies_on_a_card_is_counted(used, line):
    """By the profile or by NVML, whichever is more: a server that runs is in both."""
    now = used and tuple(gigabytes * 10**9 for gigabytes in used)
    _, total = checked(
        FakeMachine(used=now), vqa=XL, questions={**SERVER, "server_memory_gb": {"cuda:0": 10}}
    )

    assert f"cuda:0: {line}" in total.splitlines()


def test_a_card_may_have_a_server_alone():
    """This process has no CUDA then."""
    _, total = checked(questions={**SERVER, "server_memory_gb": {"cuda:1": 10}})

    assert ["Weights: none here.", "cuda:1: 10.0 GB with 10.0 GB of the server of questions."] == (
        total.splitlines()
    )


def test_a_repository_nobody_measured_is_of_unknown_size():
    """And the total says that something is missing in it."""
    rows, total = checked(vqa={**XL, "checkpoint": "owner/name"})

    assert rows["vqa"].endswith("unknown")
    assert total == "Weights: more, not known until it is fetched. Activations come on top."


def test_what_the_cache_holds_is_measured(tmp_path):
    """A snapshot of the pinned commit."""
    snapshot = tmp_path / "hub" / "models--zhiqiulin--clip-flant5-xl" / "snapshots" / XL["revision"]
    snapshot.parent.mkdir(parents=True)
    golden_copy(snapshot)

    rows, _ = checked(vqa=XL)
    assert f"{snapshot} (the hub's cache)" in rows["vqa"]
    assert rows["vqa"].endswith("0.8 MB")


def test_a_clip_that_open_clip_knows_by_name_says_where_its_weights_would_come_from(tmp_path, monkeypatch):
    """The hub's repository, what lies of it in the cache, or a file."""
    named = {"family": "open_clip", "model": "ViT-L-14-336-quickgelu"}
    rows, _ = checked(clip={**named, "pretrained": "openai"})
    assert "ViT-L-14-336-quickgelu, openai" in rows["clip"]
    assert "timm/vit_large_patch14_clip_336.openai (not in the cache)" in rows["clip"]
    assert rows["clip"].endswith("1.7 GB")

    snapshots = tmp_path / "hub" / "models--timm--vit_large_patch14_clip_336.openai" / "snapshots"
    weights = snapshots / ("a" * 40) / "open_clip_model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.symlink_to(GOLDEN.parents[2] / "models/demo/weights/clip/open_clip_model.safetensors")
    (snapshots.parent / "refs").mkdir()
    (snapshots.parent / "refs" / "main").write_text("a" * 40)
    monkeypatch.setenv("HOME", str(weights.parent))
    for pretrained in ("openai", str(weights), f"~/{weights.name}"):
        rows, _ = checked(clip={**named, "model": "ViT-L/14-336-quickgelu", "pretrained": pretrained})
        assert str(weights) in rows["clip"]
        assert rows["clip"].endswith("7.6 MB")


def test_a_clips_weights_are_measured_under_whatever_name_they_are_loaded(tmp_path):
    """In open_clip's own layout the only file of weights may be called anything."""
    directory = tmp_path / "clip"
    shutil.copytree(GOLDEN.parents[2] / "models/demo/weights/clip", directory)
    (directory / "open_clip_model.safetensors").rename(directory / "epoch_1.safetensors")

    for checkpoint in (str(directory), f"local-dir:{directory}"):
        rows, _ = checked(clip={"family": "open_clip", "checkpoint": checkpoint})
        assert rows["clip"].endswith("float32, cpu  7.6 MB")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"family": "clip_flant5", "checkpoint": "/srv/nothing"}, "/srv/nothing: no such directory"),
        ({"family": "clip_flant5"}, "no checkpoint"),
        ({"family": "clip_flant5", "checkpoint": "demo:clip"}, "config.json: missing"),
        ({"family": "clip_flant5", "checkpoint": "demo:clip_flant5", "device": "gpu"}, "gpu"),
        (
            {"role": "clip", "family": "open_clip", "model": "ViT-L-14", "pretrained": "x"},
            "ViT-L-14, x: `pretrained` is neither",
        ),
        ({"role": "clip", "family": "open_clip", "model": "ViT", "pretrained": __file__}, "ViT, "),
        ({"role": "questions", "family": "transformers", "checkpoint": "demo:clip"}, "config.json: missing"),
    ],
)
def test_what_can_be_seen_to_fail_names_the_model(model, told):
    """No directory, no weights, another architecture, no such device."""
    with pytest.raises(CheckpointError, match=r"^models\.vqa: ") as wrong:
        checked(vqa=model)
    assert told in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_what_only_the_files_beside_the_weights_say_is_checked_too(tmp_path, server):
    """A projector that isn't implemented: one line, exit status 2."""
    directory = configure(golden_copy(tmp_path / "c"), mm_projector_type="linear")
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[models.vqa]\nfamily = "clip_flant5"\ncheckpoint = "{directory}"\n')
    status, out, [line] = server("--check", "--config", profile)

    assert (2, "") == (status, out)
    assert "mm_projector_type is 'linear'" in line


def test_a_redis_is_not_asked_and_its_password_not_shown():
    """The address must be one, and that is all."""
    url = "redis://:s3cret@redis.example.com/0"
    settings = load_settings(None, {"SCOREGATE_CACHE__QUESTIONS": url, "SCOREGATE_CACHE__SCORES": url})

    assert "s3cret" not in check(settings)


def test_a_missing_file_of_keys_fails_the_check():
    """It would end the start."""
    settings = load_settings(None, {"SCOREGATE_SERVER__API_KEYS_FILE": "/srv/none"})

    with pytest.raises(SettingsError, match="api_keys_file"):
        check(settings)
