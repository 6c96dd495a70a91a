"""Trained models as folders of plain files: reading, encoding, decoding, pages and export."""
