"""Small models with real tokenizers, as folders: what `vec2emb trim` is tried on."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT

WIDTH = 16
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": WIDTH}
SEQ2SEQ = {
    "d_model": WIDTH,
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), WIDTH),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
}


@functools.cache
def texts() -> list[str]:
    """English and Chinese lines of this repository's own pages, each once, in an order of chance."""
    pages = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference")
    lines = {line.strip() for page in pages for line in page.read_text("utf-8").split("\n") if len(line) > 30}
    found = sorted(line for line in lines if "<" not in line)  # special tokens are none of the trained ones
    random.Random(0).shuffle(found)
    return found[:600]


# Tokenizers, each trained on the texts.


def word_piece(lines: list[str], size: int) -> Any:
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(lines, vocab_size=size, min_frequency=1, show_progress=False)
    pairs = [("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]"))]
    from tokenizers.processors import BertProcessing

    tokenizer._tokenizer.post_processor = BertProcessing(*pairs)
    return tokenizer._tokenizer


def byte_level(lines: list[str], size: int, specials: list[str]) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator(lines, vocab_size=size, show_progress=False, special_tokens=specials)
    if "</s>" in specials:
        from tokenizers.processors import RobertaProcessing

        ends, begins = (("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))
        tokenizer._tokenizer.post_processor = RobertaProcessing(ends, begins)
    return tokenizer._tokenizer


def unigram(lines: list[str], size: int, specials: list[str]) -> Any:
    from tokenizers import SentencePieceUnigramTokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = SentencePieceUnigramTokenizer()
    tokenizer.train_from_iterator(
        lines, vocab_size=size, show_progress=False, special_tokens=specials, unk_token="<unk>"
    )
    inner = tokenizer._tokenizer
    ids = [(token, inner.token_to_id(token)) for token in ("<s>", "</s>") if token in specials]
    single = "<s> $A </s>" if "<s>" in specials else "$A </s>"
    inner.post_processor = TemplateProcessing(single=single, pair=f"{single} $B </s>", special_tokens=ids)
    return inner


def characters(lines: list[str], size: int) -> Any:
    """Like Llama's: BPE on characters, bytes for those that are rare, and every pair that gives a token as a merge."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    from tokenizers.processors import TemplateProcessing
    from tokenizers.trainers import BpeTrainer

    metaspace = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained = Tokenizer(models.BPE())
    trained.normalizer = metaspace
    specials = ["<unk>", "<s>", "</s>"]
    trainer = BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=120, special_tokens=specials)
    trained.train_from_iterator([line[:80] for line in lines], trainer)
    learned = sorted(trained.get_vocab(), key=trained.get_vocab().__getitem__)[3:]
    tokens = specials + [f"<0x{byte:02X}>" for byte in range(256)] + learned
    vocabulary = {token: id for id, token in enumerate(tokens)}
    merges = []
    for token in learned:
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        fitting = [(a, b) for a, b in cuts if a in vocabulary and b in vocabulary]
        merges += sorted(fitting, key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = metaspace
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tokenizer


# Models.


def model(kind: str, config: str, **settings: Any) -> Any:
    """A model of transformers with random weights."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    return getattr(transformers, kind)(getattr(transformers, config)(**settings)).eval()


def bert(folder: Path, lines: list[str], size: int = 1500) -> None:
    tokenizer = word_piece(lines, size)
    made = model("BertForMaskedLM", "BertConfig", vocab_size=tokenizer.get_vocab_size(), pad_token_id=0, **SIZES)
    save(folder, tokenizer, made, "BertTokenizerFast", unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]",
         cls_token="[CLS]", sep_token="[SEP]")  # fmt: skip


def roberta(folder: Path, lines: list[str]) -> None:
    tokenizer = byte_level(lines, 1200, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens(["<mask>"])
    made = model("RobertaForMaskedLM", "RobertaConfig", vocab_size=tokenizer.get_vocab_size(), **SIZES)
    save(folder, tokenizer, made, "RobertaTokenizerFast", bos_token="<s>", eos_token="</s>", mask_token="<mask>")


def xlm_roberta(folder: Path, lines: list[str]) -> None:
    tokenizer = unigram(lines, 2500, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens(["<mask>"])
    made = model("XLMRobertaForMaskedLM", "XLMRobertaConfig", vocab_size=tokenizer.get_vocab_size(), **SIZES)
    save(folder, tokenizer, made, "XLMRobertaTokenizerFast", bos_token="<s>", eos_token="</s>", mask_token="<mask>")
    (folder / "sentencepiece.bpe.model").write_bytes(b"the old vocabulary")


def gpt2(folder: Path, lines: list[str]) -> None:
    tokenizer = byte_level(lines, 1200, [])
    tokenizer.add_special_tokens(["<|endoftext|>"])
    end = tokenizer.token_to_id("<|endoftext|>")
    sizes = {"n_embd": WIDTH, "n_layer": 2, "n_head": 2, "bos_token_id": end, "eos_token_id": end}
    made = model("GPT2LMHeadModel", "GPT2Config", vocab_size=tokenizer.get_vocab_size(), **sizes)
    save(folder, tokenizer, made, "GPT2TokenizerFast", shards="20KB", eos_token="<|endoftext|>")


def t5(folder: Path, lines: list[str]) -> None:
    tokenizer = unigram(lines, 2000, ["<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens([f"<extra_id_{i}>" for i in range(9, -1, -1)])
    sizes = {"d_model": WIDTH, "d_kv": 8, "d_ff": WIDTH, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    rows = tokenizer.get_vocab_size() + 28  # as T5 has them: rows of no token
    made = model("T5ForConditionalGeneration", "T5Config", vocab_size=rows, **sizes)
    save(folder, tokenizer, made, "T5TokenizerFast", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
         extra_ids=10)  # fmt: skip


def llama(folder: Path, lines: list[str]) -> None:
    tokenizer = characters(lines, 1000)
    sizes = {**SIZES, "num_key_value_heads": 1, "tie_word_embeddings": False}
    made = model("LlamaForCausalLM", "LlamaConfig", vocab_size=tokenizer.get_vocab_size(), **sizes)
    save(folder, tokenizer, made.bfloat16(), "LlamaTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def bart(folder: Path, lines: list[str]) -> None:
    tokenizer = byte_level(lines, 1200, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens(["<mask>"])
    made = model(
        "BartForConditionalGeneration", "BartConfig", vocab_size=tokenizer.get_vocab_size(), forced_bos_token_id=0,
        **SEQ2SEQ,
    )  # fmt: skip
    made.final_logits_bias.copy_(pytest.importorskip("torch").arange(tokenizer.get_vocab_size())[None])
    save(folder, tokenizer, made, "BartTokenizerFast", bos_token="<s>", eos_token="</s>", mask_token="<mask>")


def sentences(folder: Path, lines: list[str]) -> None:
    """BERT with pooling and a dense layer, as sentence-transformers saves it."""
    pytest.importorskip("torch")
    package, models = map(pytest.importorskip, ("sentence_transformers", "sentence_transformers.models"))
    inner = folder.with_name(f"{folder.name}-bert")
    bert(inner, lines)
    transformer = models.Transformer(str(inner))
    pooling = models.Pooling(WIDTH)
    dense = models.Dense(WIDTH, 8)
    package.SentenceTransformer(modules=[transformer, pooling, dense], device="cpu").save(str(folder))


DONORS: dict[str, Callable[[Path, list[str]], None]] = {
    "bert": bert, "roberta": roberta, "xlm-roberta": xlm_roberta, "gpt2": gpt2, "t5": t5, "llama": llama, "bart": bart,
}  # fmt: skip


def save(folder: Path, tokenizer: Any, made: Any, kind: str, shards: str = "5GB", **settings: Any) -> None:
    """Write the folder as a checkpoint on the Hub has it."""
    made.save_pretrained(folder, max_shard_size=shards)
    tokenizer.save(str(folder / "tokenizer.json"))
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    if content["model"]["type"] != "Unigram":
        tokenizer.model.save(str(folder))  # the files of the slow tokenizer
    added = {str(entry["id"]): {k: v for k, v in entry.items() if k != "id"} for entry in content["added_tokens"]}
    settings |= {"tokenizer_class": kind, "model_max_length": 512, "added_tokens_decoder": added}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    beyond = {e["content"]: e["id"] for e in content["added_tokens"] if e["content"] not in _vocabulary(content)}
    if beyond:
        (folder / "added_tokens.json").write_text(json.dumps(beyond), "utf-8")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n", "utf-8")
    (folder / "LICENSE").write_text("The license.\n", "utf-8")


def _vocabulary(content: dict[str, Any]) -> set[str]:
    vocabulary = content["model"]["vocab"]
    return {token for token, _ in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)


def encodings(folder: Path, lines: list[str]) -> Iterator[list[int]]:
    """The ids of texts, special tokens included, by the `tokenizers` package."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for encoding in tokenizer.encode_batch(lines):
        yield encoding.ids
