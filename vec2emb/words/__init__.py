"""Words: the vocabulary and its file, lookup of a token, word lists, special tokens."""
