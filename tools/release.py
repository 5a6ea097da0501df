"""Build what a release consists of, into `dist/`: `python tools/release.py`, or `make release`.

- the wheels and source distributions of `reside` and `reside-jazz`
- `reside-engine-VERSION-linux-ARCH.tar.gz`: the programs with which a bootstrap runs on an operator's machine
- `reside-images-VERSION-linux-ARCH.tar.gz`: the platform's images and contracts, as an OCI image layout
- `images.json` and `image-documents.json`: their digests, and what they say about themselves
- `SHA256SUMS`

The same commit with the same toolchain gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

from tools import image_archive  # noqa: E402 - after the path is set

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECTS: Final = (".", "reside/jazz")
SUMS: Final = "SHA256SUMS"
_READY_S: Final = 60.0


class ReleaseError(Exception):
    """The release can't be built; the message says what to do."""


def main(arguments: list[str] | None = None) -> int:
    """Build the release; return the exit code."""
    options = _parse(arguments)
    try:
        check(options.allow_changes)
        if options.out.exists():
            shutil.rmtree(options.out)
        options.out.mkdir(parents=True)
        for part in options.only or PARTS:
            _say(f"building {part}")
            PARTS[part](options.out)
        write_sums(options.out)
    except (ReleaseError, image_archive.DamagedStorageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print((options.out / SUMS).read_text(), end="")
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/release.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder, which is emptied first")
    parser.add_argument("--only", action="append", choices=[*PARTS], help="a part; all if not given")
    parser.add_argument("--allow-changes", action="store_true", help="also if files are not committed")
    return parser.parse_args(arguments)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def version() -> str:
    """Return the version, which both distributions have."""
    found = {
        str(tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["version"])
        for project in PROJECTS
    }
    if len(found) != 1:
        raise ReleaseError(f"the distributions have the versions {', '.join(sorted(found))}: give them the same one")
    return found.pop()


def check(allow_changes: bool) -> None:
    """Check that the release is that of a commit, and that the changelog has it.

    Raises:
        ReleaseError: something is not committed, or CHANGELOG.md has no such version.
    """
    if allow_changes:
        return
    if _git("status", "--porcelain"):
        raise ReleaseError("some files are not committed: commit them, or add --allow-changes for a trial")
    if f"\n## {version()}" not in (ROOT / "CHANGELOG.md").read_text():
        raise ReleaseError(f"CHANGELOG.md has no section {version()}: rename `Unreleased` (docs/versions.md)")


def build_distributions(out: Path) -> None:
    """Build the wheels and source distributions."""
    for project in PROJECTS:
        _build(project, out)


def _build(project: str, out: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(_cache() / "uv/bin"))
    if uv is None:
        raise ReleaseError("uv was not found: run `make .venv/.synced`")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")}
    command = [uv, "build", "--quiet", "--out-dir", str(out.absolute()), project]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"`uv build` of {project} failed:\n{done.stderr[-2000:]}")
    (out / ".gitignore").unlink(missing_ok=True)  # uv's own


def pack_programs(out: Path) -> None:
    """Pack Pulumi's engine, the provider, and what else a bootstrap needs on an operator's machine."""
    from images.contents import ENGINE_TOOLS  # noqa: PLC0415 - after the path is set
    from reside.local.errors import LocalError  # noqa: PLC0415
    from reside.local.toolchain import Toolchain  # noqa: PLC0415

    try:
        found = Toolchain.default().find_all(ENGINE_TOOLS)
    except LocalError as error:
        raise ReleaseError(str(error)) from error
    with image_archive.archive(out / f"reside-engine-{version()}-{_platform()}.tar.gz") as tar:
        for name, path in sorted(found.items()):
            image_archive.add_file(tar, f"reside-engine/{name}", path, executable=True)


def pack_images(out: Path) -> None:
    """Build the platform's images into a registry of this run, and pack them with their digests."""
    with TemporaryDirectory() as scratch, _registry(Path(scratch)) as address:
        command = [sys.executable, str(ROOT / "images/build.py"), "--push", address]
        command += ["--documents", str(out / "image-documents.json"), "--write", str(out / "images.json")]
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise ReleaseError("the images could not be built: see the errors above")
        for name in ("image-documents.json", "images.json"):
            (out / name).chmod(0o644)
        images = dict(_named(out / "images.json"))
        path = out / f"reside-images-{version()}-{_platform()}.tar.gz"
        image_archive.write(path, image_archive.Storage(Path(scratch) / "storage"), images)


def _named(digests: Path) -> Iterator[tuple[str, str]]:
    """Yield the name with the version as its tag, and the digest, of each image."""
    import json  # noqa: PLC0415 - only here

    for image in json.loads(digests.read_text()).values():
        identity, _, digest = image.partition("@")
        yield f"{identity}:{version()}", digest


@contextmanager
def _registry(scratch: Path) -> Iterator[str]:
    """Run a registry on loopback while the block is open; yield its address."""
    import yaml  # noqa: PLC0415 - the programs need only the standard library

    from reside.common.polling import wait_until  # noqa: PLC0415 - after the path is set
    from reside.local.toolchain import Toolchain  # noqa: PLC0415

    port = _free_port()
    config = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(scratch / "storage")}},
        "http": {"addr": f"127.0.0.1:{port}", "secret": "of this run"},
    }
    (scratch / "config.yaml").write_text(yaml.safe_dump(config))
    command = [str(Toolchain.default().find("docker-registry")), "serve", str(scratch / "config.yaml")]
    with (scratch / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            if not wait_until(lambda: _answers(port), _READY_S):
                raise ReleaseError(f"the registry did not start:\n{(scratch / 'log').read_text()[-2000:]}")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def write_sums(out: Path) -> None:
    """Write the SHA-256 of each file, as `sha256sum --check` reads them."""
    lines = []
    for path in sorted(out.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (out / SUMS).write_text("".join(lines))


PARTS: Final = {"distributions": build_distributions, "programs": pack_programs, "images": pack_images}


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"`git {arguments[0]}` failed: build a release in a checkout\n{done.stderr}")
    return done.stdout.strip()


def _cache() -> Path:
    from reside.build.cache import cache_folder  # noqa: PLC0415 - after the path is set

    return cache_folder()


def _platform() -> str:
    return f"{sys.platform}-{platform.machine()}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
