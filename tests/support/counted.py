"""A kind of image that is counted."""

from typing import Any

from models.images.image import Image


class Counted:
    """
    The images of a *kind* that were made of files.

    Attributes:
        kind: of the images; each counts how often it is decoded.
        images: in order.
    """

    def __init__(self) -> None:
        self.images = images = list[Any]()

        class CountedImage(Image):
            def __init__(self, *of: Any) -> None:
                super().__init__(*of)
                images.append(self)
                self.times = 0

            def _decoded(self) -> Any:
                self.times += 1
                return super()._decoded()

        self.kind = CountedImage

    @property
    def times(self) -> int:
        """How often they were decoded."""
        return sum(image.times for image in self.images)
