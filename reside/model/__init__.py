"""The words of ReSide as data and pure functions: importable by all, importing none of the rest."""
