"""ReSide's data model as values and pure functions. Every package may import it; it imports none of them."""
