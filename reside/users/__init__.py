"""The replica *user manager*: users by name, sets of permissions, and who has what (docs/model.md, section 4)."""
