"""`serve --model NAME`: the profile that names stand for, and what is said before and after loading."""

import json
import tomllib
from pathlib import Path

import pytest

from models.core.contract import CheckpointAway, CheckpointError
from models.core.family import Family
from models.core.settings import ModelSettings
from models.families import names
from models.families.names import table_of
from models.families.openai import EmbedderSettings
from models.families.registry import families
from service.core.settings import SettingsError
from service.process import needs
from service.process.command import parser, settings_in, write
from service.process.gate import settings_for
from service.process.model_names import as_toml, profile_of
from service.wiring.load import load_settings, settings_of
from tests.support.command import never, server
from tests.support.machines import FakeMachine

__all__ = ["server"]

ON_CPU = ["cpu"]


def profile(*names, devices=ON_CPU, dtype=""):
    """The settings of *names*."""
    return settings_of(profile_of(names, {}, devices, dtype), "--model", {})


@pytest.mark.parametrize(
    ("name", "role", "family"),
    [
        ("zhiqiulin/clip-flant5-xl", "vqa", "clip_flant5"),
        ("zhiqiulin/clip-flant5-xxl", "vqa", "clip_flant5"),
        ("THUDM/ImageReward", "imagereward", "imagereward"),
        ("TIGER-Lab/EditReward-Qwen2.5-7B-VL", "editreward", "editreward"),
        ("KwaiVGI/VideoReward", "videoalign", "videoalign"),
        ("MizzenAI/HPSv3", "hpsv3", "hpsv3"),
        ("Junjun2333/HPSv3-PlusPlus", "hpsv3pp", "hpsv3pp"),
        ("yuvalkirstain/PickScore_v1", "clip", "open_clip"),
        ("xswu/HPSv2", "clip", "open_clip"),
        ("Qwen/Qwen3-VL-8B-Instruct", "vqa", "qwen_vl"),
        ("demo:clip_flant5", "vqa", "clip_flant5"),
        ("demo:clip", "clip", "open_clip"),
        ("demo:question_llm", "questions", "transformers"),
        ("demo:nli", "nli", "transformers_nli"),
        ("demo:detector", "detector", "mask2former"),
        ("openai:Qwen/Qwen3-4B-Instruct-2507@http://127.0.0.1:8001", "questions", "openai"),
        ("openai:Qwen/Qwen3-VL-8B-Instruct@http://127.0.0.1:8002/v1", "vqa", "openai_vlm"),
        ("reward=openai:HPSv3@http://127.0.0.1:8003", "reward", "openai_reward"),
        ("rerank=openai:m@http://127.0.0.1:8003", "reranker", "openai_rerank"),
        ("reranker=openai:m@http://127.0.0.1:8003", "reranker", "openai_rerank"),
        ("clip=openai:m@http://127.0.0.1:8003", "clip", "openai_clip"),
        ("openai:Qwen/Qwen3-VL-Reranker-2B@http://127.0.0.1:8003", "reranker", "openai_rerank"),
        ("openai:jinaai/jina-reranker-m0@http://127.0.0.1:8003", "reranker", "openai_rerank"),
        ("openai:Qwen/Qwen3-VL-Embedding-8B@http://127.0.0.1:8003", "clip", "openai_clip"),
        ("openai:google/siglip2-base-patch16-224@http://127.0.0.1:8003", "clip", "openai_clip"),
        ("openai:openai/clip-vit-base-patch32@http://127.0.0.1:8003", "clip", "openai_clip"),
    ],
)
def test_a_name_has_a_role_and_a_family(name, role, family):
    """By a table of published models, by the configuration of a checkpoint, or by what the name says."""
    table = table_of(name)

    assert (role, family) == (table["role"], table["family"])


def test_an_embedder_of_qwen_has_the_inputs_of_its_release():
    """By its name; another embedder has none of them."""
    named, other = (
        table_of(f"clip=openai:{name}@http://127.0.0.1:8003") for name in ("Qwen/Qwen3-VL-Embedding-2B", "m")
    )
    settings = EmbedderSettings(**named)

    assert ("Represent the user's input.", True) == (settings.instruction, settings.texts_as_chats)
    assert {"add_generation_prompt": True, "add_special_tokens": True} == settings.extra_body
    assert {"role", "family", "base_url", "model"} == {*other}


@pytest.mark.parametrize("others", [{}, {"texts_as_chats": True, "body": "jina"}])
def test_an_instruction_that_some_inputs_would_lack_is_refused(others):
    """It is in chats alone."""
    table = table_of("clip=openai:m@http://127.0.0.1:8003")
    with pytest.raises(ValueError, match="an instruction needs texts_as_chats = true"):
        EmbedderSettings(**table, instruction="Represent it.", **others)


def test_a_directory_is_recognised_by_its_configuration(tmp_path):
    """As on the hub, since the same files decide."""
    (tmp_path / "config.json").write_text('{"model_type": "siglip2"}', "utf-8")

    assert {"role": "clip", "family": "transformers_clip", "checkpoint": str(tmp_path)} == table_of(
        str(tmp_path)
    )


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "qwen3_vl"])
def test_a_vlm_of_qwen_runs_here_unless_its_name_has_a_server(kind, tmp_path):
    """A quantised one is refused before its weights are downloaded."""
    path, config = tmp_path / "config.json", {"model_type": kind}
    path.write_text(json.dumps(config), "utf-8")

    assert {"role": "vqa", "family": "qwen_vl", "checkpoint": str(tmp_path)} == table_of(str(tmp_path))
    assert "openai_vlm" == table_of(f"vqa=openai:{tmp_path}@http://127.0.0.1:8001")["family"]
    path.write_text(json.dumps({**config, "quantization_config": {"quant_method": "fp8"}}), "utf-8")
    with pytest.raises(CheckpointError, match="its weights are quantised; vLLM serves such a checkpoint"):
        table_of(str(tmp_path))


def test_an_architecture_of_open_clip_needs_a_tag():
    """OpenAI's weights are the default if there are some."""
    table = table_of("ViT-L-14-336-quickgelu")

    assert ("ViT-L-14-336-quickgelu", "openai") == (table["model"], table["pretrained"])
    assert "laion2b_s32b_b79k" == table_of("ViT-H-14:laion2b_s32b_b79k")["pretrained"]
    with pytest.raises(CheckpointError, match="add one of open_clip's tags"):
        table_of("ViT-H-14")


def test_a_family_of_another_package_may_have_the_names_of_a_library(monkeypatch):
    """A name that no library has is no model."""
    function = f"{__name__}:eye_of"
    eyes = Family("eyes", role="sight", settings=ModelSettings, loader=function, library=function)
    monkeypatch.setattr(names, "families", lambda: {**families(), "eyes": eyes})

    assert {"role": "sight", "family": "eyes", "model": "eye:blue"} == table_of("eye:blue")
    with pytest.raises(CheckpointError, match=r"^--model ear:left: is not a hub id"):
        table_of("ear:left")


def eye_of(name):
    """The settings of an eye."""
    return {"model": name} if name.startswith("eye:") else None


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("ViT-L-14", "ViT-L-14-quickgelu:openai"),
        ("ViT-L-14-336:openai", "ViT-L-14-336-quickgelu:openai"),
        ("ViT-B-32:laion400m_e31", "ViT-B-32-quickgelu:laion400m_e31"),
    ],
)
def test_weights_of_another_activation_are_refused_before_a_download(name, other):
    """open_clip would compute with the wrong one, and warns only after it; the right name is said."""
    with pytest.raises(CheckpointError, match=f"QuickGELU, unlike this architecture; use {other}$"):
        table_of(name)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (("blip-2", "Blip2ForConditionalGeneration", "t5"), ("vqa", "instructblip")),
        (("blip-2", "Blip2ForImageTextRetrieval", "bert"), ("itm", "blip_itm")),
        (("blip", "BlipForQuestionAnswering", "blip_text_model"), ("vqa", "blip_vqa")),
        (("blip", "BlipForImageTextRetrieval", "blip_text_model"), ("itm", "blip_itm")),
        (("instructblip", "InstructBlipForConditionalGeneration", "t5"), ("vqa", "instructblip")),
        (("blip-2", "Blip2ForConditionalGeneration", "opt"), "must be a T5, not 'opt'"),
        (("instructblip", "InstructBlipForConditionalGeneration", "llama"), "must be a T5, not 'llama'"),
    ],
)
def test_a_blip_with_a_decoder_or_a_flan_t5_answers_questions(config, expected, tmp_path):
    """Two kinds have the model_type `blip-2`, and two `blip`; other language models are refused at once."""
    kind, architecture, language = config
    text = {
        "model_type": kind,
        "architectures": [architecture],
        "text_config": {"model_type": language},
    }
    (tmp_path / "config.json").write_text(json.dumps(text), "utf-8")
    if isinstance(expected, str):
        with pytest.raises(CheckpointError, match=expected):
            table_of(str(tmp_path))
    else:
        table = table_of(str(tmp_path))
        assert expected == (table["role"], table["family"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cat", "is not a hub id"),
        ("demo:cat", "no such demo model; there are clip, clip_flant5, detector, nli, question_llm"),
        ("openai:qwen", "must be openai:NAME@URL"),
        ("openai:qwen@ftp://somewhere", "must be openai:NAME@URL"),
        ("openai:qwen@http://h/v1?key=secret", "openai:qwen@URL: the URL must be http://HOST"),
        ("openai:qwen@http://h:99999", "openai:qwen@URL: the URL must be http://HOST"),
        ("openai:qwen@http://h/v1\n", "the URL must be http://HOST"),
        ("openai:qwen@http://user:secret@h/v1", "openai:qwen@URL: the URL must be http://HOST"),
        ("ocr=openai:qwen@http://somewhere", "the role must be one of questions, reward, embedding"),
    ],
)
def test_what_is_no_model_is_refused_with_what_would_be(name, message):
    """The line names the argument."""
    with pytest.raises(CheckpointError, match=message) as refused:
        table_of(name)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("name", "wanted"), [("dmeo", "demo"), ("gpu-24g", "gpu-24gb")])
def test_a_mistyped_profile_gets_the_one_that_was_meant(name, wanted):
    """Of `--local` and `scoregate.load`, which take profiles and models; a model's own message stays."""
    with pytest.raises(CheckpointError, match=rf"is not a hub id.*; did you mean {wanted}\?$"):
        settings_for([name], [], "")


@pytest.mark.parametrize("arguments", [["check"], ["--check", "serve"]])
def test_models_by_name_are_checked_without_being_loaded(arguments, server):
    """As those of a profile."""
    status, out, _ = server(*arguments, "--model", "demo:clip", "--devices", "cpu", load=never)

    assert 0 == status
    assert ["clip", "clip"] == out.splitlines()[1].split()[:2]


def test_models_of_one_role_get_names_of_their_own():
    """The metrics that are their weights use the model that was named for them."""
    settings = profile("demo:clip", "PickScore", "xswu/HPSv2", "aesthetic", "ImageReward")

    names = ["clip", "pickscore", "hpsv2", "aesthetic", "imagereward"]
    assert names == [*settings.models]
    assert ["clip", "clip", "clip", "aesthetic", "imagereward"] == [t.role for t in settings.models.values()]
    assert {name: {"model": name} for name in names[1:]} == settings.metrics


@pytest.mark.parametrize("name", ["pickscore", "hpsv2", "imagereward", "aesthetic"])
def test_the_weights_of_a_metric_are_those_of_the_profile_of_rewards(name):
    """With the same files and the same preparation of pictures."""
    table = profile(name).models[name]
    shipped = load_settings(Path("rl-rewards"), {}).models[name]
    same = {"revision": "", "device": "cpu"}

    assert table.model_copy(update=same) == shipped.model_copy(update=same)


@pytest.mark.parametrize(
    ("first", "second", "role"),
    [
        ("demo:clip", "ViT-L-14-quickgelu:openai", "clip"),
        ("demo:clip_flant5", "vqa=openai:m@http://h", "vqa"),
        ("PickScore", "yuvalkirstain/PickScore_v1", "clip"),
    ],
)
def test_a_second_model_of_a_role_is_refused(first, second, role):
    """No metric would use it, and its memory would be taken."""
    with pytest.raises(
        SettingsError, match=f"--model {second}: .* --model {first} has the same role, {role}; "
    ):
        profile(first, second)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (["cuda:1"], ("cuda:1", None)),
        (["all"], ("cpu", ("all",))),
        (["cuda:0", "cuda:1"], ("cpu", ("cuda:0", "cuda:1"))),
    ],
)
def test_devices_and_dtype_are_those_of_every_model(devices, expected):
    """On a GPU a CLIP stays in float32, as in the profiles, unless the argument says otherwise."""
    settings = profile("demo:clip_flant5", "demo:clip", devices=devices)

    assert {expected} == {(table.device, table.devices) for table in settings.models.values()}
    assert ["bfloat16", "float32"] == [table.dtype for table in settings.models.values()]
    assert {"bfloat16"} == {
        table.dtype
        for table in profile("demo:clip", "demo:nli", devices=devices, dtype="bfloat16").models.values()
    }


def test_the_written_profile_is_the_profile(server, tmp_path):
    """A later start with --config has the same settings."""
    loaded = []

    def load(settings):
        loaded.append(settings)
        raise CheckpointAway("the start ends here")

    file, store = tmp_path / "profile.toml", {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/q.sqlite3"}
    arguments = ["--model", "demo:clip_flant5", "--model", "openai:qwen@http://127.0.0.1:8001"]
    _, out, [line] = server(
        "serve", *arguments, "--port", "0", "--devices", "cpu", "--write-profile", file, load=load, **store
    )

    assert "scoregate-server: the start ends here" == line
    assert loaded == [load_settings(file, store)]
    assert "qwen" in out
    assert "Missing for clip_i, clipscore, refclipscore: --model openai/clip-vit-large-patch14-336." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "a.toml", "--model", "demo:clip"], "--config and --model: a profile has its own"),
        (["--dtype", "bfloat16"], "--dtype: needs --model NAME"),
        (["--config", "a.toml", "--write-profile", "b.toml"], "--write-profile: needs --model NAME"),
        (["--model", "demo:clip", "--write-profile", "/no/such/folder/a.toml"], "No such file or directory"),
    ],
)
def test_arguments_that_contradict_end_the_start(server, arguments, message):
    """With status 2 and one line."""
    status, _, [line] = server("serve", *arguments)

    assert 2 == status
    assert message in line


def test_toml_has_what_the_tables_have():
    """Nested tables, text with quotes, controls and emoji, numbers, booleans and lists."""
    tree = {
        "a": {
            "b": {"text": 'a "b"\n\x7f\x00 é🙂', "n": 1, "x": 0.5, "yes": True, "list": ["a", "b"]},
            "c": {"d": 1},
        }
    }

    assert tree == tomllib.loads(as_toml(tree))


def test_a_profile_that_no_toml_can_hold_is_refused(tmp_path):
    """As of a folder whose name is not UTF-8; no file is left half written."""
    file = tmp_path / "profile.toml"
    with pytest.raises(SettingsError, match="is not UTF-8"):
        write(file, as_toml({"checkpoint": "/models/\udcff"}))

    assert not file.exists()


def test_what_lacks_is_said_with_the_argument_that_adds_it():
    """A model for each role; a metric that is its own weights is not missed."""
    lines = [*needs.lacking(profile("demo:clip_flant5"))]

    assert any(
        line.startswith("Missing for ") and "dsg" in line and "openai:NAME@URL" in line for line in lines
    )
    assert not any("pickscore" in line for line in lines)


@pytest.mark.parametrize("where", ["serve", "doctor"])
def test_an_address_may_be_given_beside_a_profile(where, monkeypatch):
    """It goes before the profile's and the environment's; 0 is a port, too."""
    monkeypatch.setenv("SCOREGATE_SERVER__PORT", "9000")
    words = [where, "--config", "demo", "--host", "127.0.0.2", "--port", "0"]
    found = settings_in(parser().parse_args(words), FakeMachine()).server

    assert ("127.0.0.2", 0) == (found.host, found.port)


@pytest.mark.parametrize(("gpus", "device", "dtype"), [(0, "cpu", "float32"), (2, "cuda:0", "bfloat16")])
def test_without_a_gpu_the_cpu_is_the_default(gpus, device, dtype):
    """And the first GPU if there is one."""
    table = profile_of(["demo:clip_flant5"], {}, [], "", FakeMachine(gpus))["models"]["vqa"]

    assert (device, dtype) == (table["device"], table["dtype"])
