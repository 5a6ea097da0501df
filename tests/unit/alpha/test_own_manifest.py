"""Alpha's manifest and the Sentinel's contract in code equal those of the images and the Sentinel."""

from __future__ import annotations

from pathlib import Path

import yaml

from reside.alpha.contract import CONTRACT, PACKAGED
from reside.alpha.manifest import MANIFEST, sentinel_grants
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.constants import ALPHA_CONTRACT, SENTINEL_CONTRACT, SENTINEL_NAME
from reside.model.manifest import ReplicaManifest, parse_manifest
from reside.sentinel.contract.manifest import CONTRACT as SENTINEL

IMAGES = Path(__file__).parents[3] / "images"


def test_the_manifest_is_that_of_the_image() -> None:
    image = parse_manifest(yaml.safe_load((IMAGES / "alpha" / "manifest.yaml").read_text()))
    assert isinstance(image, ReplicaManifest)
    for member in ("identity", "info", "implementations"):
        assert getattr(image, member) == getattr(MANIFEST, member)
    wanted = {key: {p.name for p in r.permissions} for key, r in MANIFEST.requirements.items()}
    assert {key: {p.name for p in r.permissions} for key, r in image.requirements.items()} == wanted


def test_the_packaged_contract_of_the_sentinel_is_the_sentinels() -> None:
    packaged = PACKAGED[SENTINEL_CONTRACT]
    assert (set(packaged.permissions), set(packaged.methods)) == (set(SENTINEL.permissions), set(SENTINEL.methods))


def test_every_packaged_contract_has_its_identity_as_key() -> None:
    assert {identity: contract.identity for identity, contract in PACKAGED.items()} == {
        ALPHA_CONTRACT: ALPHA_CONTRACT,
        SENTINEL_CONTRACT: SENTINEL_CONTRACT,
    }


def test_permissions_that_alpha_requires_of_the_sentinel_exist() -> None:
    assert {ref.name for ref in sentinel_grants("co_zAlpha")} <= set(SENTINEL.permissions)
    assert set(MANIFEST.requirements) == {SENTINEL_NAME}


def test_the_super_admin_gets_permissions_that_exist() -> None:
    assert set(SUPER_ADMIN_PERMISSIONS) < set(CONTRACT.permissions)
