"""An object store and keys for tests: S3 and KMS as moto's server has them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "hidden-credential", "AWS_REGION": "us-east-1"}
"""Environment of a program that uses them; moto accepts any key."""
REGION = CREDENTIALS["AWS_REGION"]


@dataclass(frozen=True)
class Cloud:
    """A bucket and a key."""

    s3: Any
    bucket: str
    settings: dict[str, str]
    """What the engine's settings say about them."""

    def names(self) -> list[str]:
        """Return the names of all objects in the bucket."""
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def delete(self, prefix: str) -> None:
        """Delete the objects with this prefix."""
        for key in self.names():
            if key.startswith(prefix):
                self.s3.delete_object(Bucket=self.bucket, Key=key)

    def content(self) -> bytes:
        """Return the content of all objects in the bucket."""
        return b"".join(self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in self.names())


@contextmanager
def moto_server() -> Iterator[str]:
    """Yield the address of moto's server on a free port of loopback."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def run_cloud() -> Iterator[Cloud]:
    """Yield a bucket and a key; needs `CREDENTIALS` in the environment."""
    with moto_server() as url:
        s3, kms = (boto3.client(name, region_name=REGION, endpoint_url=url) for name in ("s3", "kms"))
        bucket = f"states-{uuid4().hex}"  # moto's servers in one process share their buckets
        s3.create_bucket(Bucket=bucket)
        key = kms.create_key()["KeyMetadata"]["KeyId"]
        at = f"region={REGION}&endpoint={url}"
        backend = f"s3://{bucket}/cluster?{at}&s3ForcePathStyle=true"
        yield Cloud(s3, bucket, {"backend": backend, "secrets_provider": f"awskms://{key}?{at}"})
