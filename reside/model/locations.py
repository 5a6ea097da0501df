"""Where images are. An identity has the same name in every cluster, but its images may be in another repository.

Identities of ReSide, its contracts and examples begin with `PREFIX`. The setting `image_repository` of a cluster names
the repository that has their images; so an image has the same digest everywhere, and a replica that requires a contract
of ReSide runs in each cluster. Pure.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput

PREFIX: Final = f"{RESIDE_REGISTRY}/reside"
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
    if repository.startswith(f"{PREFIX}/"):
        return f"an image repository can't be below {PREFIX}, which are names of identities: choose another path"
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
    below = name.removeprefix(f"{PREFIX}/")
    return name if repository is None or below == name else f"{repository}/{below}"


def _validated(repository: str) -> str:
    if (fault := fault_of(repository)) is not None:
        raise ValueError(fault)
    return repository


ImageRepository = Annotated[str, AfterValidator(_validated)]
