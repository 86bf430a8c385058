"""torch's default dtype is the loading thread's own: a batch of another thread computes in its own dtype."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL.Image
import pytest
import torch
from transformers import AutoModel, BertConfig, BertModel, Owlv2ForObjectDetection

from models.checkpoints.pretrained import load_pretrained
from models.core.calls import DetectCall
from models.core.contract import CheckpointError
from models.core.default_dtype import own_default_dtype
from models.core.family import Family
from models.core.settings import LocalSettings
from models.families.clip.model import Clip
from models.families.detector.mask2former import Mask2Former, Mask2FormerNetwork
from models.families.detector.owlv2 import Owlv2
from models.images.image import Image
from tests.support.clip_checkpoints import PLAIN, save_own

ON_THE_CPU = {"dtype": "float32", "device": "cpu"}
EVERYTHING = 0.0
FUNCTIONS = torch.get_default_dtype, torch.set_default_dtype


def bert(directory):
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=37)
    AutoModel.from_config(config).save_pretrained(directory)
    return directory


def loaded(*given):
    """Load a network as a family's loader is run: with a default dtype of this thread's own."""
    with own_default_dtype():
        return load_pretrained(*given)


@pytest.fixture
def building(segmenter, monkeypatch):
    """Another thread that builds a network in bfloat16, until the end of the test."""
    inside, free = threading.Event(), threading.Event()
    build = Mask2FormerNetwork.__init__

    def held(network, config):
        build(network, config)
        assert torch.bfloat16 == torch.get_default_dtype()
        inside.set()
        free.wait(60)

    with ThreadPoolExecutor(1) as threads, monkeypatch.context() as patch:

        def begin():
            patch.setattr(Mask2FormerNetwork, "__init__", held)
            loads = threads.submit(loaded, Mask2FormerNetwork, segmenter, torch.bfloat16)
            assert inside.wait(60)
            return loads

        yield begin
        free.set()


@pytest.mark.parametrize("kind", ["mask2former", "owlv2"])
def test_a_batch_has_the_same_numbers_while_another_network_is_built(
    kind, segmenter, open_vocabulary, building
):
    """To the last bit, though the other network is in bfloat16."""
    model = {
        "mask2former": lambda: Mask2Former(segmenter, **ON_THE_CPU),
        "owlv2": lambda: Owlv2(open_vocabulary, **ON_THE_CPU),
    }[kind]()
    wanted = ("dog", "red cat") if kind == "owlv2" else ()
    pixels = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    image = Image.of(PIL.Image.fromarray(pixels))

    def found():
        return model.score([model.prepare(DetectCall(image, wanted, EVERYTHING))])

    before = found()
    loads = building()

    assert before == found()
    assert before[0].found
    assert not loads.done()


def test_a_text_tower_in_bfloat16_sets_no_dtype_of_other_threads(tmp_path, monkeypatch):
    """open_clip has transformers build it, in the dtype of the tower's configuration."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    tower = BertConfig(**sizes, vocab_size=1003, pad_token_id=1000, dtype="bfloat16")
    tower.save_pretrained(tmp_path / "text")
    text = {"hf_model_name": str(tmp_path / "text"), "hf_tokenizer_name": "own", "context_length": 16}
    directory = save_own(tmp_path / "clip", {**PLAIN, "text_cfg": text})
    build, dtypes = BertModel.__init__, []

    def seen(network, *args, **kwargs):
        with ThreadPoolExecutor(1) as threads:
            dtypes.append((torch.get_default_dtype(), threads.submit(torch.get_default_dtype).result()))
        build(network, *args, **kwargs)

    monkeypatch.setattr(BertModel, "__init__", seen)
    with own_default_dtype():
        Clip(str(directory), **ON_THE_CPU)

    assert [(torch.bfloat16, torch.float32)] == dtypes


def by_transformers(settings):
    """Load a network by transformers alone, as families of other packages may."""
    dtypes = []

    class Seen(BertModel):
        def __init__(self, config):
            with ThreadPoolExecutor(1) as threads:
                dtypes.append((torch.get_default_dtype(), threads.submit(torch.get_default_dtype).result()))
            super().__init__(config)

    Seen.from_pretrained(settings.checkpoint, dtype=torch.bfloat16)
    return dtypes


def test_a_loader_of_another_package_sets_no_dtype_of_other_threads(tmp_path):
    """Whatever it has transformers build: it runs with a default dtype of its thread's own."""
    family = Family("bert", role="bert", settings=LocalSettings, loader=f"{__name__}:by_transformers")
    settings = LocalSettings(family="bert", role="bert", checkpoint=str(bert(tmp_path)))

    assert [(torch.bfloat16, torch.float32)] == family.load("bert", settings)
    assert torch.float32 == torch.get_default_dtype()


@pytest.mark.parametrize("kind", ["mask2former", "owlv2", "bert"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_network_is_the_one_that_transformers_loads(kind, dtype, segmenter, open_vocabulary, tmp_path):
    """Every weight and buffer has the same dtype and numbers; Mask2Former makes one by `torch.Tensor(n)`."""
    network, directory = {
        "mask2former": lambda: (Mask2FormerNetwork, segmenter),
        "owlv2": lambda: (Owlv2ForObjectDetection, open_vocabulary),
        "bert": lambda: (AutoModel, bert(tmp_path)),
    }[kind]()
    ours = loaded(network, directory, dtype)
    theirs = network.from_pretrained(directory, dtype=dtype)

    def tensors(of):
        return dict(of.named_parameters()) | dict(of.named_buffers())

    assert tensors(ours).keys() == tensors(theirs).keys()
    for name, expected in tensors(theirs).items():
        torch.testing.assert_close(tensors(ours)[name], expected, rtol=0, atol=0, msg=name)


@pytest.mark.parametrize(
    "new",
    [
        lambda: torch.zeros(2),
        lambda: torch.full((2,), 0.1),
        lambda: torch.full((2,), 1),
        lambda: torch.arange(3),
        lambda: torch.arange(0, 1, 0.25),
        lambda: torch.tensor([0.1, 2]),
        lambda: torch.tensor([1, 2]),
        lambda: torch.tensor(torch.ones(1, dtype=torch.float32)),
        lambda: torch.as_tensor(np.ones(1, np.float32)),
        lambda: torch.linspace(0, 1, 3, dtype=torch.float32),
        lambda: torch.nn.Linear(1, 1).weight.detach().fill_(0.1),
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_new_tensor_has_the_dtype_that_the_thread_has_set(new):
    """As by torch's own default: for floats without a dtype, and for nothing else."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        expected = new()
    finally:
        torch.set_default_dtype(torch.float32)
    with own_default_dtype():
        torch.set_default_dtype(torch.bfloat16)
        found = new()

    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_each_thread_with_a_default_has_its_own():
    """Whichever ends first; others have that of the process, which they can set."""
    begun, over = threading.Barrier(2), threading.Event()

    def short():
        with own_default_dtype():
            torch.set_default_dtype(torch.float16)
            begun.wait(60)
            begun.wait(60)
            return torch.zeros(1).dtype, torch.get_default_dtype()

    def long():
        with own_default_dtype():
            torch.set_default_dtype(torch.bfloat16)
            begun.wait(60)
            begun.wait(60)
            assert over.wait(60)
            return torch.zeros(1).dtype, torch.get_default_dtype()

    with ThreadPoolExecutor(2) as threads:
        both = threads.submit(short), threads.submit(long)
        assert (torch.float16,) * 2 == both[0].result(60)
        assert (torch.float32,) * 2 == (torch.zeros(1).dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        try:
            assert torch.float64 == torch.zeros(1).dtype
        finally:
            torch.set_default_dtype(torch.float32)
        over.set()
        assert (torch.bfloat16,) * 2 == both[1].result(60)

    assert FUNCTIONS == (torch.get_default_dtype, torch.set_default_dtype)


def test_a_load_that_fails_leaves_nothing(segmenter, monkeypatch):
    """Neither functions nor a dtype."""

    def broken(network, config):
        raise ValueError("broken")

    monkeypatch.setattr(Mask2FormerNetwork, "__init__", broken)
    with pytest.raises(CheckpointError, match="broken"):
        loaded(Mask2FormerNetwork, segmenter, torch.bfloat16)

    assert FUNCTIONS == (torch.get_default_dtype, torch.set_default_dtype)
    assert torch.float32 == torch.get_default_dtype() == torch.zeros(1).dtype
