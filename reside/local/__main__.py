"""`python -m reside.local`: the same as `reside local`."""

from reside.local.cli import app

if __name__ == "__main__":
    app(prog_name="reside local")
