"""Settings, keys and logs: read once, checked, and silent about what they must not say."""

import json
import sys

import pytest
from pydantic import BaseModel

from models.families.registry import families
from service.core import redis
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.web.keys import Keys
from service.wiring.load import for_metrics, load_settings
from tests.support.fake_service import key_table

PROFILE = """
[server]
port = 9000
[models.vqa]
family = "clip_flant5"
checkpoint = "/somewhere"
"""


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE)
    return path


def test_the_demo_profile_is_what_runs_without_a_configuration():
    """A demo model in each role, and one that grades, on 127.0.0.1:8000."""
    settings = load_settings(None, {})

    assert ("127.0.0.1", 8000) == (settings.server.host, settings.server.port)
    roles = ("clip", "vqa", "questions", "nli", "ocr", "detector")
    assert {role: role for role in roles} | {"judge": "vqa"} == {
        name: model.role for name, model in settings.models.items()
    }


def test_the_environment_overrides_any_value(profile):
    """SCOREGATE_ and the path joined by __; a demo model can be pointed elsewhere."""
    environ = {"SCOREGATE_SERVER__PORT": "1", "SCOREGATE_MODELS__VQA__BATCH__MAX_ITEMS": "7", "HOME": "/"}
    settings = load_settings(profile, environ)
    demo = load_settings(None, {"SCOREGATE_MODELS__VQA__CHECKPOINT": "/path"})

    assert (1, 7) == (settings.server.port, settings.models["vqa"].batch.max_items)
    assert "/path" == demo.models["vqa"].checkpoint


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"SCOREGATE_SERVER__PROT": "1"}, "server.prot"),
        ({"SCOREGATE_SERVER__PORT": "many"}, "server.port"),
        ({"SCOREGATE_MODELS__VQA__FAMILY": "gpt"}, "models.vqa.family"),
        ({"SCOREGATE_METRICS__DSG__MODEL": "nobody"}, "nobody"),
        ({"SCOREGATE_IMAGES__MAX_PIXELS": "900000000"}, "decoded_budget_mb"),
        ({"SCOREGATE_SERVER__PORT__DEEPER": "1"}, "port"),
        ({"SCOREGATE_SERVER__OPERATOR_HOSTS": '["gpu-1:9090"]'}, "operator_hosts"),
        ({"SCOREGATE_SERVER__OPERATOR_HOSTS": '["http://gpu-1"]'}, "operator_hosts"),
        ({"SCOREGATE_CACHE__QUESTIONS": "mysql://x"}, "cache.questions"),
        ({"SCOREGATE_CACHE__QUESTIONS": "memory"}, "cache.questions"),
        ({"SCOREGATE_CACHE__SCORES": "sqlite:///x"}, "cache.scores"),
        ({"SCOREGATE_CACHE__SCORES": "offline"}, "cache.scores"),
        ({"SCOREGATE_CACHE__SCORES_TTL_S": "0"}, "cache.scores_ttl_s"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(profile, environ, named):
    """Unknown names, wrong types, values out of range."""
    with pytest.raises(SettingsError, match=named) as wrong:
        load_settings(profile, environ)
    assert "\n" not in str(wrong.value)


def leaves(section, place=()):
    """The path of every setting below a section that has no names of an operator's choice."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation, (*place, name))
        elif name not in ("models", "metrics", "composites"):
            yield (*place, name)


MAY_BE_EMPTY = {("telemetry", "otlp_endpoint"), ("dialects", "metric")}  # as their defaults are


@pytest.mark.parametrize("place", sorted({*leaves(Settings)} - MAY_BE_EMPTY), ids=".".join)
def test_an_empty_variable_never_takes_a_protection_away(profile, place):
    """Compose sets it for one that is not set: as a host it would be every address, as a file none."""
    variable = f"SCOREGATE_{'__'.join(place).upper()}"
    with pytest.raises(SettingsError, match=f"{variable}: ") as wrong:
        load_settings(profile, {variable: ""})
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("value", ["", " "])
@pytest.mark.parametrize(
    "setting", ["server.host", "server.api_keys_file", "dialects.host", "cache.redis_ca_file"]
)
def test_an_empty_value_in_a_profile_is_one_line_that_names_the_setting(profile, setting, value):
    """It stands there as it does in a variable."""
    section, name = setting.split(".")
    profile.write_text(f'[{section}]\n{name} = "{value}"\n[models.vqa]\nfamily = "fake"\n')

    with pytest.raises(SettingsError, match=rf"profile\.toml: {setting}: is empty; give a value"):
        load_settings(profile, {})


def test_a_byte_order_mark_before_a_profile_is_skipped(profile):
    """Editors and shells of Windows write one."""
    profile.write_bytes(b"\xef\xbb\xbf" + profile.read_bytes())

    assert 9000 == load_settings(profile, {}).server.port


def test_a_byte_order_mark_before_keys_is_skipped(tmp_path):
    """As some editors write it."""
    file = tmp_path / "keys.toml"
    file.write_bytes(b"\xef\xbb\xbf" + key_table("a", "secret").encode())

    assert Keys.read(file).of({"x-api-key": "secret"})


@pytest.mark.parametrize(
    ("family", "setting"),
    [
        ("open_clip", {"features_mb": 1}),
        ("clip_flant5", {"pretrained": "openai"}),
        ("transformers", {"compile": True}),
        ("openai", {"checkpoint": "demo:clip", "base_url": "http://h/v1", "model": "m"}),
        ("openai_vlm", {"dtype": "float32", "base_url": "http://h/v1", "model": "m"}),
        ("fake", {"checkpoint": "demo:clip"}),
    ],
)
def test_a_setting_of_another_family_is_refused(tmp_path, family, setting):
    """It would have no effect, and its author believes that it has one."""
    role = families()[family].role or "vqa"
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"family": family, **setting}.items()]
    profile = tmp_path / "profile.toml"
    profile.write_text("\n".join([f"[models.{role}]", *lines]))

    with pytest.raises(SettingsError, match=rf"models\.{role}\.{next(iter(setting))}: .*{family}") as wrong:
        load_settings(profile, {})
    assert "\n" not in str(wrong.value)


def test_a_model_of_another_role_than_its_familys_is_refused(profile):
    """A role is the family's; a table may only repeat it."""
    with pytest.raises(SettingsError, match=r"models\.vqa\.role: .*clip_flant5 serves the role 'vqa'"):
        load_settings(profile, {"SCOREGATE_MODELS__VQA__ROLE": "clip"})


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://:secret@",
        "redis://:secret@host:port/0",
        "redis://:secret@host:99999/0",
        "redis://:secret@host:0/0",
        "redis://:secret@host/0\n",
        "redis://:secret@host/db",
        "redis://:secret@host/0?socket_timeout=secret",
        "redis://:se/secret@host/0",
        "redis://:se@secret@host/0",
        "redis://:secret@ho st/0",
        "rediss://:secret@",
        "unix://secret",
        "unix://:secret@",
    ],
)
@pytest.mark.parametrize("name", ["QUESTIONS", "SCORES"])
def test_an_address_that_is_none_is_one_line_that_does_not_quote_it(profile, name, url):
    """It may hold a password, wherever the mistake is."""
    with pytest.raises(SettingsError, match=f"cache.{name.lower()}: ") as wrong:
        load_settings(profile, {f"SCOREGATE_CACHE__{name}": url})
    told = f"{wrong.value} {wrong.value.__cause__}"
    assert "redis://[USER:PASSWORD@]HOST[:PORT][/DB]" in str(wrong.value)
    assert "secret" not in told
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://host", "host:6379"),
        ("redis://user:s3cret%2F%40@redis.example-1.com:6380/3", "redis.example-1.com:6380"),
        ("rediss://:s3cret@10.0.0.1/", "10.0.0.1:6379"),
        ("redis://:s3cret@[::1]:6380/0", "[::1]:6380"),
        ("unix://:s3cret@/run/redis.sock?db=2", "/run/redis.sock"),
    ],
)
def test_of_an_address_its_place_alone_is_shown(profile, url, place):
    """Not even the repr of the settings holds the password."""
    environ = {"SCOREGATE_CACHE__QUESTIONS": url, "SCOREGATE_CACHE__SCORES": url}
    settings = load_settings(profile, environ)

    assert {"questions": url, "scores": url} == settings.cache.redis
    assert place == redis.shown(url)
    assert "s3cret" not in repr(settings)


def test_a_redis_without_its_package_is_one_line_that_says_what_to_install(profile, monkeypatch):
    """The package is an extra, and nobody else needs it."""
    monkeypatch.setitem(sys.modules, "redis", None)
    assert load_settings(profile, {}).cache.redis == {}
    with pytest.raises(SettingsError, match=r"cache.scores: .*pip install '\.\[redis\]'"):
        load_settings(profile, {"SCOREGATE_CACHE__SCORES": "redis://host"})


BAD = 'questions = ["a?"]\nweights = ["x"]\n'  # a checklist


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        (
            '[policies.p]\naccept = "checklist >= 1"\n[policies.p.options.checklist.checklist]\n',
            "policies.p.options.checklist.checklist.weights.0",
        ),
        (
            "[composites.c.checklist]\nweight = 1\n[composites.c.checklist.checklist]\n",
            "composites.c.checklist",
        ),
        ("[dialects.options.checklist.checklist]\n", "dialects.options.checklist.checklist.weights.0"),
    ],
)
def test_a_wrong_table_in_an_option_is_named_by_its_place_alone(profile, tables, place):
    """Not by that of a form that a request may have in its stead; and by what is wrong, in plain words."""
    own = {"SCOREGATE_CHECKLISTS__ALLOW_INLINE": "true"}
    profile.write_text(f"{PROFILE}{tables}{BAD}", "utf-8")
    with pytest.raises(SettingsError) as wrong_number:
        load_settings(profile, own)
    profile.write_text(f"{PROFILE}{tables}{BAD}".replace('"x"', "0"), "utf-8")
    with pytest.raises(SettingsError) as zero:
        load_settings(profile, own)

    assert f": {place}" in str(wrong_number.value)
    assert str(wrong_number.value).endswith(".checklist.weights.0: Input should be a valid number")
    assert ".checklist: weights: all are 0" in str(zero.value)


def test_wrong_options_of_a_local_run_are_named_likewise(profile):
    """Before any model is loaded."""
    settings = load_settings(profile, {"SCOREGATE_CHECKLISTS__ALLOW_INLINE": "true"})
    table = {"questions": ["a?"], "weights": ["x"]}

    with pytest.raises(
        SettingsError, match=r"^checklist\.checklist\.weights\.0: Input should be a valid number"
    ):
        for_metrics(settings, {"checklist": {"checklist": table}})


def test_a_missing_profile_is_named(tmp_path):
    """So is a broken one."""
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load_settings(tmp_path / "none.toml", {})
    (tmp_path / "broken.toml").write_text("[server")
    with pytest.raises(SettingsError, match=r"broken\.toml"):
        load_settings(tmp_path / "broken.toml", {})


@pytest.fixture
def keys_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(key_table("team-a", "secret"))
    return path


def test_a_key_is_known_by_its_hash_and_logged_by_its_name(keys_file):
    """Bearer or X-API-Key; anything else is nobody."""
    keys = Keys.read(keys_file)

    for headers in ({"authorization": "Bearer secret"}, {"x-api-key": "secret"}):
        key = keys.of(headers)
        assert key is not None
        assert "team-a" == key.name
    assert [None] * 3 == [
        keys.of(headers) for headers in ({}, {"authorization": "Basic secret"}, {"x-api-key": "Secret"})
    ]


@pytest.mark.parametrize("content", [b"", b"team-a:secret", b"team-a", b"\xff"])
def test_a_keys_file_that_holds_no_hashes_is_refused(tmp_path, content):
    """A key in the clear must not look as if it worked."""
    path = tmp_path / "keys"
    path.write_bytes(content)

    with pytest.raises(SettingsError, match="api_keys_file"):
        Keys.read(path)
