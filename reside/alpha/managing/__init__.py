"""Managing replicas: enable, disable, place, scale, give away, refresh, promote or abort a canary, delete."""
