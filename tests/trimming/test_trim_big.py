"""A model as large as XLM-R large: 250,000 tokens, 2 GB of tensors, trimmed in little memory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from vec2emb.safetensors_files.header import TensorInfo, encode_header, read_header

pytest.importorskip("tokenizers")

ROWS, WIDTH = 250_002, 1024
WORD = "roberta.embeddings.word_embeddings.weight"
OTHER = "roberta.encoder.layer.0.output.dense.weight"
LIMIT = 250_000_000  # bytes of memory

# What the process of a caller needs: the trimming, without the processes that load tokenizers.
PROGRAM = """
import json, sys, time
import vec2emb
from vec2emb.trimming.worker import peak_memory
began = time.monotonic()
done = vec2emb.trim(sys.argv[1], sys.argv[2], corpus=sys.argv[3], max_size=50_000, min=["coverage=0.5"])
print(json.dumps({**done.to_dict(), "seconds": time.monotonic() - began, "own_memory": peak_memory()}))
"""


def tokens() -> list[str]:
    """Special tokens, 12,000 single characters and random words of two alphabets."""
    draw = random.Random(0)
    alphabet = [chr(code) for code in (*range(0x61, 0x7B), *range(0x430, 0x450))]
    singles = ["▁", *alphabet, *map(chr, range(0x4E00, 0x4E00 + 12_000))]
    found = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *singles])
    while len(found) < ROWS - 1:
        found["▁" * draw.randint(0, 1) + "".join(draw.choices(alphabet, k=draw.randint(2, 9)))] = None
    return list(found)


def write_donor(folder: Path, vocabulary: list[str]) -> None:
    scores = [[token, 0.0 if id < 4 else -5 - id * 4e-5] for id, token in enumerate(vocabulary)]
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ends = [{"SpecialToken": {"id": token, "type_id": 0}} for token in ("<s>", "</s>")]
    content = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": id, "content": token, **special}
                         for id, token in [*enumerate(vocabulary[:4]), (ROWS - 1, "<mask>")]],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "TemplateProcessing", "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}},
                           ends[1]], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                           {"Sequence": {"id": "B", "type_id": 0}}],
                           "special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]}
                                              for token, id in (("<s>", 0), ("</s>", 2))}},
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": scores, "byte_fallback": False},
    }  # fmt: skip
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "xlm-roberta", "vocab_size": ROWS}))
    size = ROWS * WIDTH * 4
    header = encode_header(
        {
            WORD: TensorInfo("F32", (ROWS, WIDTH), 0, size),
            OTHER: TensorInfo("F32", (ROWS + 1, WIDTH), size, 2 * size + WIDTH * 4),
        }
    )
    with open(folder / "model.safetensors", "wb") as file:
        file.write(header)
        for row in range(0, ROWS, 997):  # the others are zero: the file has holes
            file.seek(len(header) + row * WIDTH * 4)
            file.write(row.to_bytes(4, "little") * WIDTH)
        file.truncate(len(header) + 2 * size + WIDTH * 4)


@pytest.mark.slow
def test_250000_tokens_and_2_gb(tmp_path: Path) -> None:
    draw, vocabulary = random.Random(1), tokens()
    write_donor(tmp_path / "model", vocabulary)
    words = [token.removeprefix("▁") for token in draw.choices(vocabulary[12_100:], k=30_000)]
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(" ".join(draw.choices(words, k=20)) + "\n" for _ in range(10_000)), "utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM, *map(str, (tmp_path / "model", out, corpus))]
    done = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    print({name: done[name] for name in ("seconds", "own_memory", "memory", "tokens", "coverage", "identical")},
          f"proof {done['proof']['memory']}", os.cpu_count())  # fmt: skip
    assert done["own_memory"] < LIMIT
    assert done["tokens"][1] <= 50_000
    assert done["proof"]["whole"] <= done["proof"]["identical"]
    header = read_header(out / "model.safetensors")
    info = header.tensors[WORD]
    assert info.shape == (done["rows"][1], WIDTH)
    new = {}
    for line in (out / "vec2emb_trim.tsv").read_text("utf-8").split("\n")[1:-1]:
        old_id, new_id, _ = line.split("\t", 2)
        if new_id:
            new[int(new_id)] = int(old_id)
    with open(out / "model.safetensors", "rb") as file:
        for row in range(0, info.shape[0], 7):
            file.seek(header.data_start + info.start + row * WIDTH * 4)
            old = new[row]
            assert file.read(WIDTH * 4) == (old if old % 997 == 0 else 0).to_bytes(4, "little") * WIDTH
