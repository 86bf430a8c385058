"""Wire types of images: as base64, as a file part, by address, or several of these as frames."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, GetPydanticSchema, StringConstraints
from pydantic_core import core_schema

from service.core.fields import Strict, branch
from service.images.sources import Base64
from service.metrics.common.contract import MAX_FRAMES, MAX_REFERENCES

# A text that only its source holds, which frees it after decoding.
Text = Annotated[
    Base64,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_after_validator_function(
            Base64, core_schema.str_schema(strict=True)
        )
    ),
]


class ImageData(Strict):
    """An image as base64, or as a `data:` URI that holds base64."""

    data: Text


class ImagePart(Strict):
    """An image in a file part of the same multipart body."""

    part: Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ImageUrl(Strict):
    """An image that the server downloads, if the operator allows it."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def image_form(value: Any) -> str:
    """Return the form of an image, so that errors are about that form alone."""
    if isinstance(value, str):
        return "<base64>"
    if isinstance(value, dict):
        return next((f"<{key}>" for key in ("part", "url") if key in value), "<data>")
    return "<frames>" if isinstance(value, list) else "<data>"


Picture = Annotated[
    Annotated[Text, branch("<base64>")]
    | Annotated[ImageData, branch("<data>")]
    | Annotated[ImagePart, branch("<part>")]
    | Annotated[ImageUrl, branch("<url>")],
    Discriminator(image_form),
]
References = Annotated[list[Picture], Field(max_length=MAX_REFERENCES, fail_fast=True)]
Frames = Annotated[list[Picture], Field(min_length=1, max_length=MAX_FRAMES, fail_fast=True)]
WireImage = Annotated[
    Annotated[Text, branch("<base64>")]
    | Annotated[ImageData, branch("<data>")]
    | Annotated[ImagePart, branch("<part>")]
    | Annotated[ImageUrl, branch("<url>")]
    | Annotated[Frames, branch("<frames>")],
    Discriminator(image_form),
]
