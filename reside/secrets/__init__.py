"""The replica *secret*: named values that accounts read and set by permission (docs/secrets.md)."""
