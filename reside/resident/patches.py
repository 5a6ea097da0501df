"""Installs the patches of Pulumi's SDK for Python, if they are enabled and the SDK has the tested version.

A patch changes private parts of the SDK in the whole process. Each has a switch in the settings, and none is installed
with another version of the SDK; everything works without them, only slower (`debug_filter`) or with a rare failure
(`channels`). To raise the version, run the tests of this package with the new version and change `TESTED_SDK_VERSION`.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reside.resident.settings import ResidentSettings

TESTED_SDK_VERSION: Final = "3.259.0"
"""The only version of the package `pulumi` that is patched."""

_log = logging.getLogger(__name__)


def install_patches(settings: ResidentSettings) -> None:
    """Install the enabled patches, each at most once in a process; a patch stays installed until the process ends.

    With another version of the SDK, log a warning once and install nothing.
    """
    if not (settings.filter_debug_messages or settings.separate_channels):
        return
    version = metadata.version("pulumi")
    if version != TESTED_SDK_VERSION:
        _warn_untested(version)
        return
    # Imported here, because these modules import private parts of the SDK that other versions may not have.
    if settings.filter_debug_messages:
        from reside.resident.debug_filter import install_debug_filter  # noqa: PLC0415

        install_debug_filter()
    if settings.separate_channels:
        from reside.resident.channels import separate_channels  # noqa: PLC0415

        separate_channels()


@cache
def _warn_untested(version: str) -> None:
    _log.warning(
        "pulumi %s is installed, but the patches of Pulumi's SDK are tested with %s only and are not installed: "
        "operations are slower; install pulumi %s, or disable the patches in ResidentSettings",
        version,
        TESTED_SDK_VERSION,
        TESTED_SDK_VERSION,
    )
