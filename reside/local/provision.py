"""Run the volume provisioner of a local cluster (see `reside.local.volumes`): `python -m reside.local.provision`."""

from reside.local.component_client import connect, read_options, serve_health
from reside.local.volumes import Provisioner, run


def main() -> None:
    """Run the provisioner of one local cluster."""
    options = read_options(__doc__, "folder")
    options.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
    ready = serve_health(options.socket)
    with connect(options) as client:
        run(Provisioner(client, options.folder), ready)


if __name__ == "__main__":
    main()
