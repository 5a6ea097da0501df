"""Where the images of ReSide, its contracts and examples are: in the repository of the setting `image_repository`.

Code and manifests name them under `OWN`. A cluster that was bootstrapped with the setting has their identities under it
(`reside.model.identities`), so there each identity is the place of its images. A cluster that was bootstrapped without
it keeps the identities under `OWN`, and may have the images anywhere. Pure.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from reside.model.constants import OWN
from reside.model.errors import InvalidInput

MAX_LENGTH: Final = 200
"""Maximum length of an image repository, so that the names below it are not above 255 characters."""
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_REPOSITORY: Final = re.compile(
    rf"(?:localhost|{_LABEL}(?:\.{_LABEL})+|{_LABEL}(?:\.{_LABEL})*(?=:))(?::[0-9]{{1,5}})?"
    r"(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)+"
)


def fault_of(repository: str) -> str | None:
    """Return what is wrong with an image repository, and the cure; None if it is valid."""
    if len(repository) > MAX_LENGTH or not _REPOSITORY.fullmatch(repository):
        return (
            "an image repository is HOST/PATH in lower case, such as ghcr.io/acme/reside, of at most "
            f"{MAX_LENGTH} characters, without scheme, tag, digest and slash at the end"
        )
    if repository.startswith(f"{OWN}/"):
        return f"an image repository can't be below {OWN}, which are names of identities: choose another path"
    return None


def check_repository(repository: str, setting: str) -> str:
    """Return the repository if it is valid.

    Raises:
        InvalidInput: it is not; the message names the setting.
    """
    if (fault := fault_of(repository)) is not None:
        raise InvalidInput(f"{setting} {repository!r}: {fault}")
    return repository


def located(name: str, repository: str | None) -> str:
    """Return the name under which the images of an identity are; a tag or digest after the identity is kept."""
    return name if repository is None or not name.startswith(f"{OWN}/") else repository + name[len(OWN) :]


def _validated(repository: str) -> str:
    if (fault := fault_of(repository)) is not None:
        raise ValueError(fault)
    return repository


ImageRepository = Annotated[str, AfterValidator(_validated)]
