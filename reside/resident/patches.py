"""Installs the patches of Pulumi's SDK for Python, if they are enabled and the SDK has the tested version.

A patch changes private parts of the SDK in the whole process. Each has a switch in the settings. With another version
of the SDK, none is installed, and `ResidentCommand` uses no resident engine: the SDK and the engine belong together,
and the stock command line of the caller is the one that fits its SDK. To raise the version, run the tests of this
package with the new version and change `TESTED_SDK_VERSION`.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.resident.settings import ResidentSettings

TESTED_SDK_VERSION: Final = "3.259.0"
"""The only version of the package `pulumi` that is patched, and with which a resident engine is used."""

_log = logging.getLogger(__name__)


def is_tested_sdk() -> bool:
    """Return whether the installed SDK has the tested version; if not, log a warning once."""
    version = metadata.version("pulumi")
    if version != TESTED_SDK_VERSION:
        _warn_untested(version)
    return version == TESTED_SDK_VERSION


def install_patches(settings: ResidentSettings) -> None:
    """Install the enabled patches, each at most once in a process; a patch stays installed until the process ends.

    The SDK must have the tested version. All patches are imported before the first is installed: if one does not fit,
    none is installed.
    """
    installers: list[Callable[[], None]] = []
    # Imported here, because these modules import private parts of the SDK that other versions may not have.
    if settings.filter_debug_messages:
        from reside.resident.debug_filter import install_debug_filter  # noqa: PLC0415

        installers.append(install_debug_filter)
    if settings.separate_channels:
        from reside.resident.channels import separate_channels  # noqa: PLC0415

        installers.append(separate_channels)
    for install in installers:
        install()


@cache
def _warn_untested(version: str) -> None:
    _log.warning(
        "pulumi %s is installed, but the resident engine is tested with pulumi %s only: the stock command line runs "
        "all commands, and Pulumi's SDK is not patched; operations are slower; install pulumi %s",
        version,
        TESTED_SDK_VERSION,
        TESTED_SDK_VERSION,
    )
