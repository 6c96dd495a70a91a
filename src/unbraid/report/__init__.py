"""Standalone HTML pages: Result -> plain dictionary -> template -> one file."""
