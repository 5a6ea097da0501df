"""What a node holds in memory: the logs of its values, the states of its groups, and what depends on what."""
