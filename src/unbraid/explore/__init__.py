"""The pages of runs and studies, served to this machine and computed when asked for."""
