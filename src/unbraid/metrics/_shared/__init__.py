"""What several metrics share: checked inputs, bins, information, probes, splits."""
