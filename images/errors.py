"""What can go wrong when an image is built."""

from __future__ import annotations

from reside.local.errors import LocalError


class ImageBuildError(LocalError):
    """An image was not built; the message names it, the failed step and the end of what that step said."""

    def __init__(self, image: str, message: str) -> None:
        super().__init__(f"image {image}: {message}")
        self.image = image
