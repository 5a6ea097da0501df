"""What the Sentinel keeps on its volume."""
