"""Managing replicas: enable, disable, place, give to another owner, refresh the pod template."""
