"""Operations of a node on values: writing, loading and flushing."""
