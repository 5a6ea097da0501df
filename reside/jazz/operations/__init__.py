"""What a node does with values on behalf of its callers: writing and loading."""
