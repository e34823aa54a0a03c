"""Exports of a bundle: files of vectors, word lists, arrays and folders that other libraries load.

exporter      `export`: choose the format and run it
part          the rows that are exported, piece by piece
vectors       files of vectors: Word2Vec text and binary, GloVe, fastText `.vec`
words         word lists: vocab.json and tokenizer.json
arrays        .npz
huggingface, model2vec   folders of other libraries, as data; `model_folder` writes them, `model_card` their README.md

None of the libraries that load an export is needed to write it.
"""
