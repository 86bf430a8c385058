"""What holds for each local model: the numbers of other code, in any batch, or errors in their place."""

import hashlib
from functools import cache

import pytest
import torch

from models.core.contract import CheckpointError
from models.core.family import Plan
from models.core.memory import tensors_of
from models.families.registry import families
from service.core.errors import ModelFault
from service.serving.batcher.batching import checked
from tests.models.contract.kind import numbers, numbers_in, outcomes, words
from tests.models.contract.kinds import DETECTORS, KINDS
from tests.support.dry_run import dry_run
from tests.support.spoiled_checkpoints import SPOILED

OF_TRANSFORMERS = [
    "blip",
    "blip_vqa",
    "instructblip",
    "qwen3_vl",
    "vit",
    "mask2former",
    "owlv2",
    "nli",
    "sentences",
    "questions",
    "siglip",
]
UNUSED = {"vocabulary.txt", "generation_config.json"}  # for a warning; of transformers' own `generate`


def kinds_with(field):
    """Return the parameters of a test of the kinds that have *field*."""
    return pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if getattr(kind, field)])


@pytest.fixture(params=KINDS)
def name(request):
    return request.param


@pytest.fixture
def kind(name):
    return KINDS[name]


@pytest.fixture
def directory(name, directories):
    return directories(name)


@pytest.fixture
def model(name, models):
    return models(name)


@pytest.fixture
def found(name, answers):
    return answers(name)


@kinds_with("reference")
def test_every_number_is_that_of_the_reference(kind, directory, found):
    """For pictures of several shapes and texts of several lengths, all in one batch; all calls differ."""
    expected = [*map(kind.reference(directory), kind.calls)]

    for row, one in zip(expected, found, strict=True):
        if row is not None:
            assert row == kind.approx(numbers(one))
    assert len({tuple(round(number, 4) for number in numbers(one)) for one in found}) == len(kind.calls)


def test_company_changes_nothing(kind, model, found):
    """Alone, or in any order beside longer texts and other pictures: the same."""
    some = kind.some(kind.calls)
    again = outcomes(model, *some[::-1])[::-1]
    for call, one, other in zip(some, kind.some(found), again, strict=True):
        [alone] = outcomes(model, call)
        assert words(one) == words(alone) == words(other)
        assert numbers(one) == kind.approx(numbers(alone))
        assert numbers(one) == kind.approx(numbers(other))


@pytest.mark.parametrize("name", [name for name in KINDS if name not in DETECTORS])
def test_the_default_dtype_changes_nothing(kind, model, found):
    """Transformers sets it while it builds a network; detectors rely on each thread's having its own."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        again = outcomes(model, *kind.calls)
    finally:
        torch.set_default_dtype(torch.float32)

    for one, other in zip(found, again, strict=True):
        assert numbers(other) == kind.approx(numbers(one))


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, kind in KINDS.items() for dtype in kind.near]
)
def test_in_half_precision_the_numbers_are_near(kind, directory, found, dtype):
    """Weights are rounded, but for those of some heads and text towers."""
    rough = kind.load(directory, dtype=dtype)

    assert {getattr(torch, dtype)} == {weight.dtype for weight in kind.rounded(rough).parameters()}
    for part in kind.exact(rough):
        assert {torch.float32} == {weight.dtype for weight in part.state_dict().values()}
    for one, other in zip(kind.some(found), outcomes(rough, *kind.some(kind.calls)), strict=True):
        assert numbers(other) == pytest.approx(numbers(one), rel=0, abs=kind.near[dtype])
        assert numbers(other) != numbers(one)


@kinds_with("last")
def test_an_output_that_is_not_finite_is_an_error(kind, directory):
    """Never a number that leaves the service, and never 0."""
    model = kind.load(directory)
    for broken in (torch.nan, torch.inf, -torch.inf):
        with torch.no_grad():
            kind.last(model).fill_(broken)
        for outcome in outcomes(model, *kind.calls[:2]):
            assert isinstance(checked("m", outcome), ModelFault)


@pytest.fixture(scope="module")
def tables(directories):
    """Return the model of a table with an id and a revision, and the files that were hashed for it."""

    def loaded(name):
        hashed, file_digest = [], hashlib.file_digest
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                hashlib, "file_digest", lambda file, *a: hashed.append(file.name) or file_digest(file, *a)
            )
            return KINDS[name].load(directories(name), id="ours", revision="7"), hashed

    return cache(loaded)


def test_a_table_loads_the_checkpoint_and_the_model_says_what_it_is(name, kind, directory, model, tables):
    """Its role, and a label of the directory and a hash of its files, or of the table; it answers."""
    named, _ = tables(name)
    [answered] = outcomes(named, named.example())

    role = families()[kind.family].role
    for info in (model.info, named.info):
        assert (role, kind.family) == (info.role, info.family)
    assert f"{model.info.id}@{model.info.revision}" == model.info.label
    assert model.info.id.startswith(directory.name)
    assert 12 == len(model.info.revision.partition("+")[0])
    assert "ours@7" == named.info.label.partition("+")[0]
    assert isinstance(answered, kind.result)


def test_a_plan_counts_the_numbers(kind, directory, model):
    """Those of its tensors, none of which is loaded; the model has about as many."""
    plan, count = kind.plan(directory), numbers_in(directory)

    assert Plan(plan.loads, str(directory), count) == plan
    assert plan.loads.startswith(directory.name)
    assert count / 2 < sum(tensor.numel() for tensor in tensors_of(model)) < 2 * count


@kinds_with("parts")
def test_a_tensor_that_is_left_on_the_cpu_raises(kind, directory, found, tmp_path, monkeypatch):
    """As on a GPU; without that the batch is answered."""
    if kind.gpu.make:
        directory = tmp_path / directory.name
        kind.gpu.make(directory)
    with dry_run():
        model = kind.load(directory, dtype=kind.gpu.dtype, device="cuda", revision="-", **kind.gpu.settings)
        seen = kind.gpu.stand_ins(model, monkeypatch)
        batch = [model.prepare(call) for call in kind.some(kind.calls)[: kind.gpu.calls]]
        assert [*map(type, kind.some(found)[: kind.gpu.calls])] == [*map(type, model.score(batch))]
        assert [*kind.gpu.seen] == [*seen]
        for part in kind.parts(model):
            part.to("cpu")
            with pytest.raises(RuntimeError, match="device"):
                model.score(batch)
            part.to("cuda")


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_a_spoiled_checkpoint_is_one_line_whether_it_is_loaded_or_planned(kind, name, own, spoil):
    """Which names the table and the file; nothing random is served."""
    directory = own(name)
    spoil(directory)
    for act in (kind.load, kind.plan):
        with pytest.raises(CheckpointError, match=rf"^models\.left: .*{SPOILED[spoil]}") as told:
            act(directory)
        assert isinstance(told.value.__cause__, CheckpointError)
        assert "\n" not in str(told.value.__cause__)


@pytest.mark.parametrize("name", KINDS)
def test_every_file_of_a_directory_is_part_of_the_identity(name, directory, tables):
    """Also under a revision of the settings, which stays the label."""
    model, hashed = tables(name)

    assert {str(path) for path in directory.rglob("*.*") if path.name not in UNUSED} <= {*hashed}
    assert model.info.revision.partition("+")[0] == "7"
    assert model.info.files
