"""Questions to a table: nearest neighbours, word similarity and analogies."""
