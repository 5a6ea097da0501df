"""The seed: the steps of the bootstrap, and Alpha and the Sentinel in one process."""
