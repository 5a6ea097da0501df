"""Managing replicas: enable, disable, place, scale, give to another owner, refresh the pod template, delete."""
