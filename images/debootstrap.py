"""The base image without a public registry: a small Debian, created by debootstrap.

The packages come from the mirror that apt on this machine uses; it is read from apt at run time. The tree is created in
memory, in a mount namespace of its own, so no files remain however the process ends, and dpkg's many syncs are fast.
`BASE_IMAGE` names an image to use instead; it must have Python 3.11 at `BASE_PYTHON` (default: `/usr/bin/python3`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from typing import TYPE_CHECKING, Final

from images.errors import ImageBuildError
from reside.build.cache import cached
from reside.build.context import Context, digest
from reside.model.constants import NONROOT_USER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SUITE: Final = "bookworm"
PACKAGES: Final = ("python3", "ca-certificates")
_UNNEEDED: Final = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./tmp/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/*",
    "./var/cache/debconf/*-old",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
# Arguments: folder for the tree, tar to write, file of excluded patterns, user id, then the arguments of debootstrap.
_SCRIPT: Final = """
set -eu
root=$1 tar=$2 exclude=$3 user=$4; shift 4
mount -t tmpfs -o mode=0755 reside-base "$root"
debootstrap "$@"
echo "nonroot:x:$user:" >> "$root/etc/group"
echo "nonroot:x:$user:$user:nonroot:/home/nonroot:/usr/sbin/nologin" >> "$root/etc/passwd"
echo "I: Packing the base system"
tar --create --file "$tar" --directory "$root" --numeric-owner --sort=name --exclude-from="$exclude" .
"""


class Debootstrap:
    """The content of the base image."""

    def key(self) -> str:
        """Return a hash of the tree's inputs, without the mirror, since all mirrors have the same packages."""
        return digest(SUITE, *PACKAGES, *_UNNEEDED, _SCRIPT)

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add the tree's tar; create it if the cache has none."""
        made = cached("base", self.key(), lambda folder: _make(folder, progress))
        context.copy("rootfs.tar", made / "rootfs.tar")


def _make(folder: Path, progress: Callable[[str], None]) -> None:
    if os.geteuid() != 0 or shutil.which("debootstrap", path=_path()) is None:
        raise ImageBuildError(
            "base",
            "debootstrap must build it as root: `apt-get install debootstrap` and run this as root, "
            "or name an image with Python 3.11 in BASE_IMAGE",
        )
    root, exclude = folder / "root", folder / "exclude"
    root.mkdir()
    exclude.write_text("\n".join(_UNNEEDED))
    mirror = _mirror()
    progress(f"debootstrap of {SUITE} from {_without_credentials(mirror)}")
    own = ["--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root), mirror]
    places = [str(root), str(folder / "rootfs.tar"), str(exclude), str(NONROOT_USER)]
    _run(["unshare", "--mount", "--propagation=private", "sh", "-c", _SCRIPT, "sh", *places, *own], progress)
    root.rmdir()
    exclude.unlink()


def _without_credentials(text: str) -> str:
    """Return a text without the user and password that its addresses, for example apt's, may contain."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def _run(command: list[str], progress: Callable[[str], None]) -> None:
    """Run debootstrap and report each of its steps once."""
    environment = os.environ | {"PATH": _path(), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"} | _proxy()
    tail: deque[str] = deque(maxlen=20)
    seen: set[str] = set()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for line in process.stdout or ():
            tail.append(line.rstrip())
            words = line.split()
            if line.startswith("I: ") and words[1] not in seen:
                seen.add(words[1])
                if words[1].endswith("ing"):
                    progress(f"debootstrap is {words[1].lower()} packages")
    if process.returncode != 0:
        raise ImageBuildError(
            "base", f"debootstrap exited with code {process.returncode}:\n" + _without_credentials("\n".join(tail))
        )


def _mirror() -> str:
    """Return the address of this machine's Debian mirror, as apt resolves its sources."""
    command = ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        release, component, address = line.split(" ", 2)
        if (release, component) == (SUITE, "main"):
            return address
    raise ImageBuildError(
        "base", f"apt has no source of Debian {SUITE}: add one, or name an image with Python 3.11 in BASE_IMAGE"
    )


def _proxy() -> dict[str, str]:
    """Return apt's proxy as environment variables for wget, which debootstrap runs."""
    command = ["apt-config", "shell", "PROXY", "Acquire::http::Proxy"]
    shell = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    value = shell.partition("=")[2].strip().strip("'")
    return {"http_proxy": value} if value else {}


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
