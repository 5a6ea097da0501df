"""How changes reach those who wait for them: watches, waits, and the end of an event-loop turn."""
