"""The words of ReSide as data and pure functions."""
