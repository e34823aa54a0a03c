"""Counting the tokens of a corpus, on this machine or on a cluster, and making vocabularies of the counts.

    paths -> inputs -> pieces            files, folders, patterns, URLs; ranges of bytes or of row groups
    piece -> reading -> blocks           whole tokens, lines or rows
    blocks -> tally                      the kernel's counter, and the tokenizer
    tallies -> merging -> TokenCounts    in memory, or through Parquet files where memory is short

`local` runs this by threads, `cluster` as a graph of tasks; both give the same counts to the byte.
"""

from .building import VocabReport, build_vocab
from .counting import count_tokens
from .counts import TokenCounts

__all__ = ["TokenCounts", "VocabReport", "build_vocab", "count_tokens"]
