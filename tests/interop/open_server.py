"""The mark of tests that need a server in open mode, because it has to relay what does not count for readers."""

import pytest

needs_open_server = pytest.mark.parametrize("jazz", ["open"], indirect=True)
