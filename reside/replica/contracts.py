"""Read the manifests of contracts that a replica's code implements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from reside.model.errors import InvalidManifest
from reside.model.manifest import ContractManifest, parse_manifest

if TYPE_CHECKING:
    from pathlib import Path


def load_contract(path: Path) -> ContractManifest:
    """Read the contract that a YAML or JSON file describes, with its identity in this cluster.

    Raises:
        InvalidManifest: the file is missing or not YAML, or does not describe a contract.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidManifest(f"contract {path} can't be read: {error.strerror}; is it in the image?") from error
    except yaml.YAMLError as error:
        raise InvalidManifest(f"contract {path} is not YAML: {error}") from error
    if isinstance(data, dict):
        data.setdefault("type", "contract")
    manifest = parse_manifest(data)
    if not isinstance(manifest, ContractManifest):
        raise InvalidManifest(f"{path} describes a {manifest.type}, not a contract")
    return manifest.resolved()
