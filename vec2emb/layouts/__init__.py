"""What a bundle is exported to, one module a layout; nothing of the libraries that load it is needed to write it.

part          the rows that are exported, piece by piece
vectors       files of vectors: Word2Vec text and binary, GloVe, fastText `.vec`
words         lists of words: vocab.json and tokenizer.json
arrays        .npz
huggingface, model2vec   folders of other libraries, as data; `folder` writes them, `card` their README.md
"""
