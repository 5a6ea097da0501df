"""Groups and accounts as callers use them: members, invites, and the changes of keys that go with them."""
