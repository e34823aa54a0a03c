"""Edits: a bundle with more words, other positions or other shards; checkpoints with longer position tables."""
