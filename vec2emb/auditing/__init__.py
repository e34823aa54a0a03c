"""Audits: what is in a file of vectors or a bundle, what of a corpus it covers, and what to do about it.

auditor       the way from sources to a result
streaming     the rows of a source, once through, into `geometry`; `tokens` and `kinds` look at the vocabulary
findings      what somebody should act on
coverage      which tokens of a corpus have a row; `remedies` says what would find more
comparing     several sources beside each other
results       all figures, typed; `outcome` puts them together, `schema` describes their JSON
gates         hold figures to bounds
terminal, page, plots, writing       the figures for people
"""

from .outcome import Audit

__all__ = ["Audit"]
