"""Conversions: from a source of vectors to a bundle or an array, in three steps: scan, select, fill."""
