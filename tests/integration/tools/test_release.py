"""The distributions of a release: the same bytes each time, and an installation that works without a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from reside.build.cache import cache_folder
from reside.build.typescript_kit import _sdk_key, sdk_folder

ROOT = Path(__file__).parents[3]
WITHIN_S = 240


def release(out: Path) -> dict[str, str]:
    """Build the distributions; return the SHA-256 of each file."""
    command = [sys.executable, str(ROOT / "tools/release.py"), "--out", str(out)]
    command += ["--only", "distributions", "--allow-changes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr
    lines = (out / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "dist"
    release(folder)
    return folder


@pytest.fixture(scope="module")
def environment(dist: Path) -> Path:
    """Return the folder of programs of a new environment: the wheels, beside the locked dependencies of this one."""
    folder = dist.parent / "environment"
    uv = shutil.which("uv") or str(cache_folder() / "uv/bin/uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True, timeout=WITHIN_S)
    wheels = sorted(map(str, dist.glob("*.whl")))
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(folder / "bin/python")]
    subprocess.run([*install, *wheels], check=True, timeout=WITHIN_S)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def run(environment: Path, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment, with a home of its own and no other variables."""
    variables = {"HOME": str(folder), "PATH": f"{environment}:/usr/bin:/bin", "COLUMNS": "200"}
    program = [str(environment / command[0]), *command[1:]]
    return subprocess.run(
        program, cwd=folder, env=variables, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )


def test_a_release_has_the_same_bytes_each_time(dist: Path, tmp_path: Path) -> None:
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    first = {name: digest for digest, name in (line.split("  ") for line in lines)}
    kinds = [(name.partition("-")[0], name.endswith(".whl")) for name in first]
    assert sorted(kinds) == [("reside", False), ("reside", True), ("reside_jazz", False), ("reside_jazz", True)]
    assert release(tmp_path / "again") == first
    assert subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, check=False).returncode == 0


def test_the_wheel_has_the_package_and_its_templates_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("reside-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tracked = subprocess.run(["git", "ls-files", "reside"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    expected = {name for name in tracked.splitlines() if not name.startswith("reside/jazz/")}
    found = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert found >= {name for name in expected if (ROOT / name).exists()}
    assert {name.partition("/")[0] for name in found} == {"reside"}
    assert not [name for name in found if name.startswith("reside/jazz/")]


def test_an_installation_imports_itself_and_not_the_checkout(environment: Path, tmp_path: Path) -> None:
    program = "import reside, reside.jazz; print(reside.__file__, reside.jazz.__file__)"
    done = run(environment, "python", "-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.startswith(str(environment.parent)) for path in done.stdout.split()] == [True, True]


def test_an_installation_has_the_package_for_typescript_as_a_checkout_has_it(environment: Path, tmp_path: Path) -> None:
    program = "from reside.build.typescript_kit import sdk_folder, _sdk_key as key; f = sdk_folder(); print(f, key(f))"
    done = run(environment, "python", "-c", program, folder=tmp_path)
    folder, key = done.stdout.split()
    assert folder.startswith(str(environment.parent)), done.stderr
    assert key == _sdk_key(sdk_folder())
    for name in ("package.json", "package-lock.json"):
        assert (Path(folder) / name).read_bytes() == (sdk_folder() / name).read_bytes()


def test_an_installation_explains_and_makes_a_replica_that_passes_its_test(environment: Path, tmp_path: Path) -> None:
    shown = run(environment, "reside", "--help", folder=tmp_path)
    assert (shown.returncode, "replica" in shown.stdout) == (0, True), shown.stderr
    made = run(environment, "reside", "new", "weather", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    tested = run(environment, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path / "weather")
    assert (tested.returncode, " passed" in tested.stdout) == (0, True), tested.stdout
    explained = run(environment, "reside", "explain", "ImagePullBackOff", folder=tmp_path)
    assert "Cure:" in explained.stdout


@pytest.mark.parametrize(
    "command",
    ["cluster bootstrap team", "cluster upgrade", "cluster env", "images push ghcr.io/acme/reside"],
)
def test_what_needs_a_checkout_says_so(environment: Path, tmp_path: Path, command: str) -> None:
    done = run(environment, "reside", *command.split(), folder=tmp_path)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    name = " ".join(command.split()[:2])
    assert f"`reside {name}` needs a checkout of ReSide, and this `reside` was installed without one" in said
    assert "Traceback" not in said


def test_without_a_checkout_a_manifest_needs_the_images_of_a_release(environment: Path, tmp_path: Path) -> None:
    missing = run(environment, "reside", "cluster", "manifest", folder=tmp_path)
    assert missing.returncode == 1
    assert f"{tmp_path}/.local/share/reside/state/images.json does not exist" in missing.stderr
    assert "--images" in missing.stderr
    names = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
    images = ", ".join(f'"{name}": "registry.reside.internal/reside/{name}@sha256:{"a" * 64}"' for name in names)
    (tmp_path / "images.json").write_text(f"{{{images}}}")
    shown = run(environment, "reside", "cluster", "manifest", "--images", "images.json", folder=tmp_path)
    assert (shown.returncode, "kind: Job" in shown.stdout) == (0, True), shown.stderr


def test_the_embedded_kubernetes_names_the_missing_programs(environment: Path, tmp_path: Path) -> None:
    done = run(environment, "reside", "local", "up", folder=tmp_path)
    assert done.returncode == 1
    assert "run `make tools` in the checkout, or name its folder in RESIDE_TOOLS" in " ".join(done.stderr.split())
