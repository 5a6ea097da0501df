"""The error of building images."""

from __future__ import annotations

from reside.local.errors import LocalError


class ImageBuildError(LocalError):
    """An image was not built; the message names the image, the failed step and the end of its output."""

    def __init__(self, image: str, message: str) -> None:
        super().__init__(f"image {image}: {message}")
        self.image = image
