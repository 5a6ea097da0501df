"""The parts of the bootstrap program, which `__main__.py` in the root runs."""
