"""Run Alpha as a process: `python -m reside.alpha`."""

from __future__ import annotations

from reside.alpha.app import replica
from reside.alpha.settings import AlphaSettings

replica().launch(AlphaSettings)
