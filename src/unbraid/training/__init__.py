"""Training of one model or of a population by one loop."""
