"""Networks: encoders, decoders and what adversarial methods add. No losses, no optimisers."""
