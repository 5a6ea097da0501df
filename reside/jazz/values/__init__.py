"""The values that a group owns as callers use them, and how their content is built of valid transactions."""
