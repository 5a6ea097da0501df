"""The in-memory state of a node: the logs of its values, the states of its groups, and the dependencies."""
