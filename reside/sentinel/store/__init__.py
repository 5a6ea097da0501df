"""Storage on the Sentinel's volume: validated stacks and secret values."""
