"""No code of ours turns the verification of certificates off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("reside", "stacks", "policy", "images", "tools", "engine", "replicas", "examples", "benchmarks")
SUFFIXES: Final = {".py", ".go", ".mjs", ".js", ".yaml", ".yml", ".sh"}
OFF: Final = re.compile(
    r"verify\s*=\s*False|CERT_NONE|check_hostname\s*=\s*False|_create_unverified_context|InsecureSkipVerify|"
    r"insecure-skip-tls-verify|rejectUnauthorized\s*:\s*false|NODE_TLS_REJECT_UNAUTHORIZED"
)


def test_no_code_turns_the_verification_of_certificates_off() -> None:
    files = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and "node_modules" not in path.parts and path.is_file()
    ]
    assert len(files) > 300
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        for match in OFF.finditer(path.read_text(errors="replace"))
    ]
    assert found == []


def test_the_search_finds_what_it_looks_for() -> None:
    for text in ("verify=False", "cluster: {insecure-skip-tls-verify: true}", "InsecureSkipVerify: true"):
        assert OFF.search(text)
