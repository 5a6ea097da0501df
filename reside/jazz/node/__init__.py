"""The node: what callers use, the runtime under it, and the objects that it gives out."""

from reside.jazz.node.node import Node, now_ms

__all__ = ["Node", "now_ms"]
