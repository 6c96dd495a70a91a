"""Which of many models is best, without labels."""
