"""Load requests: create, validate, approve and reject them; resolution and placeholders are pure."""
