"""Build the toolchain, which contains the Pulumi engine and Kubernetes: see `tools/builder`.

It needs only Python 3.11 and Go, because it runs before anything is installed.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    runpy.run_module("tools.builder", run_name="__main__")
