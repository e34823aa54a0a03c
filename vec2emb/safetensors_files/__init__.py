"""Safetensors files: headers, rows at their offsets, tables in one file or in shards."""
