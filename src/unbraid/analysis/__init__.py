"""Statistics over the models of a study: rankings without labels, agreement of metrics, spread by setting."""
