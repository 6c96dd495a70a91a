"""Many metrics on one representation, and how sure they are."""
