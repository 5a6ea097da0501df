"""What every replica is made of."""
