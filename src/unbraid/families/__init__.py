"""Model families: what one is made of, and the table of those that can be trained."""
