"""Bytes in and out: sources, compression, archives, URLs, atomic writes, progress."""
