"""What runs inside the seed: Alpha and the Sentinel in one process."""
