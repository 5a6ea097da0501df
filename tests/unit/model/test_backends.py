"""The settings that name the backend of states and the key that encrypts them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reside.model.cluster import ClusterSettings


@pytest.mark.parametrize(
    "settings",
    [
        {"state_backend": "volume"},
        {"state_backend": "s3://bucket/prefix?region=eu-central-1&endpoint=https://minio.example.org:9000"},
        {"state_backend": "gs://bucket", "secrets_provider": "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        {"secrets_provider": "awskms:///arn:aws:kms:us-east-1:111122223333:key/34-ab?region=us-east-1"},
        {"secrets_provider": "passphrase"},
    ],
)
def test_a_store_a_key_and_the_volume_are_accepted(settings: dict[str, str]) -> None:
    found = ClusterSettings.model_validate({"namespace": "reside", **settings})
    assert ClusterSettings(namespace="reside").stored(found.document()) == found


@pytest.mark.parametrize(
    ("settings", "cure"),
    [
        ({"state_backend": "/var/lib"}, "s3://BUCKET/PREFIX"),
        ({"state_backend": "file:///var/lib"}, "s3://BUCKET/PREFIX"),
        ({"state_backend": "https://api.pulumi.com"}, "s3://BUCKET/PREFIX"),
        ({"state_backend": "s3://key:hidden@bucket"}, "s3://BUCKET/PREFIX"),
        ({"state_backend": "s3://bucket?secret_access_key=hidden"}, "kubernetes-sentinel-store"),
        ({"secrets_provider": "default"}, "awskms://alias/NAME"),
        ({"secrets_provider": "hashivault://key?token=hidden"}, "kubernetes-sentinel-store"),
    ],
)
def test_everything_else_is_refused_with_the_cure_and_credentials_are_not_repeated(
    settings: dict[str, str], cure: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        ClusterSettings.model_validate({"namespace": "reside", **settings})
    (fault,) = refused.value.errors(include_input=False)
    assert cure in fault["msg"]
    assert "hidden" not in fault["msg"]
