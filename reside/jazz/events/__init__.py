"""Notification of changes: watches, waiters, and the end of an event-loop turn."""
