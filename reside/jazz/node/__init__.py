"""The node: the public `Node`, the runtime below it, and the objects that it returns."""

from reside.jazz.node.node import Node, now_ms

__all__ = ["Node", "now_ms"]
