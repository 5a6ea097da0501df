"""Reading kubeconfigs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from reside.kube import Context, KubeconfigError, default_files, load


def write(path: Path, name: str, server: str, current: str | None = None, namespace: str | None = None) -> Path:
    context: dict[str, Any] = {"cluster": name, "user": name, **({"namespace": namespace} if namespace else {})}
    document = {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": context}],
        "users": [{"name": name, "user": {"token": "very-secret"}}],
        **({"current-context": current} if current else {}),
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_current_context_is_chosen(tmp_path: Path) -> None:
    config = load([write(tmp_path / "a", "a", "https://a", "a", "here")])
    assert config.choose() == Context("a", "https://a", "here")


def test_a_namespace_that_is_not_set_is_the_default_one(tmp_path: Path) -> None:
    assert load([write(tmp_path / "a", "a", "https://a")]).choose("a").namespace == "default"


def test_of_several_files_the_first_to_name_a_thing_wins(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a", "a", "https://first"),
        tmp_path / "missing",
        write(tmp_path / "b", "b", "https://b", "b"),
        write(tmp_path / "c", "a", "https://second", "a"),
    ]
    config = load(files)
    assert config.current == "b"
    assert config.choose("a").server == "https://first"


def test_an_unknown_context_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    config = load([write(tmp_path / "a", "a", "https://a")])
    with pytest.raises(KubeconfigError, match=r"no context 'b'. Contexts: a"):
        config.choose("b")
    with pytest.raises(KubeconfigError, match=r"No current context"):
        config.choose()


def test_no_file_at_all_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="nowhere"):
        load([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    "content",
    [
        b"token: very-secret: x: [",
        b"- very-secret",
        b"contexts: [{very: secret}]",
        b"contexts: [{name: a, context: }]",
        b"contexts: [{name: a, context: secret}]",
        b"secret \xff",
    ],
)
def test_a_broken_file_is_named_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(KubeconfigError, match="broken is no kubeconfig") as caught:
        load([path])
    assert "secret" not in str(caught.value)


def test_credentials_are_not_read(tmp_path: Path) -> None:
    assert "very-secret" not in repr(load([write(tmp_path / "a", "a", "https://a")]))


def test_kubeconfig_in_the_environment_comes_before_the_home_folder() -> None:
    assert default_files({"KUBECONFIG": "/x:/y"}) == [Path("/x"), Path("/y")]
    assert default_files({}) == [Path.home() / ".kube/config"]
