"""Position tables against the papers' formulas, other projects' code and the identities that define them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vec2emb.errors import InputError, UsageError
from vec2emb.positions import facts, learned, resize, rotation, sinusoidal
from vec2emb.positions.key_styles import FREQUENCIES, INITS, LAYOUTS, METHODS, PRESETS

CASES = Path(__file__).parents[2] / "fixtures" / "cases"

forms = st.fixed_dictionaries({"layout": st.sampled_from(LAYOUTS), "frequencies": st.sampled_from(FREQUENCIES)})
positions = st.integers(0, 1_000_000)
even = st.integers(1, 40).map(lambda half: 2 * half)
quick = settings(deadline=None, max_examples=50)


def at(position: float, dim: int, **options: Any) -> Any:
    """One row, float64[dim]."""
    return sinusoidal(1, dim, start=position, dtype=np.float64, **options)[0]


# Values worked out by hand from the formulas.


@pytest.mark.parametrize(
    ("row", "dim", "options", "expected"),
    [
        (1, 4, {}, [0.84147098, 0.54030231, 0.00999983, 0.99995000]),
        (1, 6, {}, [0.84147098, 0.54030231, 0.04639922, 0.99892298, 0.00215443, 0.99999768]),
        (1, 4, {"preset": "t2t"}, [0.84147098, 0.00010000, 0.54030231, 0.99999999]),
        (1, 4, {"preset": "marian"}, [0.84147098, 0.00999983, 0.54030231, 0.99995000]),
        (1, 4, {"preset": "musicgen"}, [0.54030231, 0.99999999, 0.84147098, 0.00010000]),
        (2, 2, {"preset": "t2t"}, [math.sin(2), math.cos(2)]),
        (2, 1, {"preset": "xlm"}, [math.sin(2)]),
        (2, 3, {"preset": "fairseq", "padding_idx": 0}, [math.sin(2), math.cos(2), 0]),
        (3, 4, {"base": 100.0}, [math.sin(3), math.cos(3), math.sin(0.3), math.cos(0.3)]),
    ],
)
def test_hand_values(row: int, dim: int, options: dict[str, Any], expected: list[float]) -> None:
    assert sinusoidal(5, dim, dtype=np.float64, **options)[row] == pytest.approx(expected, abs=6e-9, rel=0)


def test_hand_values_of_width_512() -> None:
    assert sinusoidal(51, 512)[50, :4] == pytest.approx([-0.262375, 0.964966, -0.895339, -0.445386], abs=5e-7)


def test_case_p05a_is_interleaved() -> None:
    expected = json.loads((CASES / "P05a" / "expected.json").read_text())
    np.testing.assert_allclose(sinusoidal(3, 4), expected, atol=6e-8)


# What other projects compute.


@pytest.mark.parametrize("dim", [15, 16, 300, 301, 768])
def test_xlm_equals_transformers_to_the_bit(dim: int) -> None:
    torch, xlm = pytest.importorskip("torch"), pytest.importorskip("transformers.models.xlm.modeling_xlm")
    oracle = xlm.create_sinusoidal_embeddings(200, dim, torch.empty(200, dim)).numpy()
    ours = sinusoidal(200, dim, preset="xlm")
    assert ours.dtype == oracle.dtype == np.float32
    np.testing.assert_array_equal(ours.view(np.uint32), oracle.view(np.uint32))
    if dim % 2 == 0:
        np.testing.assert_array_equal(sinusoidal(200, dim), oracle)


@pytest.mark.parametrize("dim", [15, 16, 300])
def test_marian_equals_transformers_to_the_bit(dim: int) -> None:
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    oracle = marian.MarianSinusoidalPositionalEmbedding(200, dim).create_weight().numpy()
    np.testing.assert_array_equal(sinusoidal(200, dim, preset="marian").view(np.uint32), oracle.view(np.uint32))


@pytest.mark.parametrize("dim", [4, 15, 300, 1024])
@pytest.mark.parametrize("padding_idx", [0, 1, 5])
def test_fairseq_is_near_m2m100(dim: int, padding_idx: int) -> None:
    """They compute in float32, which at row n is wrong by up to n * 2^-23."""
    m2m100 = pytest.importorskip("transformers.models.m2m_100.modeling_m2m_100")
    rows = 1000
    oracle = m2m100.M2M100SinusoidalPositionalEmbedding.get_embedding(rows, dim, padding_idx).numpy()
    ours = sinusoidal(rows - padding_idx - 1, dim, preset="fairseq", padding_idx=padding_idx)
    assert ours.shape == oracle.shape
    assert (np.abs(ours - oracle) <= np.maximum(np.arange(rows), 1)[:, None] * 2.0**-23).all()
    assert not ours[padding_idx].any()
    assert ours[padding_idx + 1, 0] == np.float32(math.sin(padding_idx + 1)), "row k holds angle k"


def test_whisper_and_musicgen_are_near_transformers() -> None:
    musicgen = pytest.importorskip("transformers.models.musicgen.modeling_musicgen")
    whisper = pytest.importorskip("transformers.models.whisper.modeling_whisper")
    bound = np.maximum(np.arange(1500), 1)[:, None] * 2.0**-23
    assert (np.abs(sinusoidal(1500, 384, preset="whisper") - whisper.sinusoids(1500, 384).numpy()) <= bound).all()
    for dim in (64, 65):
        oracle = musicgen.MusicgenSinusoidalPositionalEmbedding.get_embedding(1500, dim).numpy()
        assert (np.abs(sinusoidal(1500, dim, preset="musicgen") - oracle) <= bound).all()


# Identities.


@quick
@given(positions, st.integers(-1000, 1000), even, forms)
def test_rotation_carries_one_position_to_another(k: int, n: int, dim: int, form: dict[str, Any]) -> None:
    np.testing.assert_allclose(rotation(n, dim, **form) @ at(k, dim, **form), at(k + n, dim, **form), atol=2e-9)


@quick
@given(even, forms)
def test_rotations_add_up_and_are_orthogonal(dim: int, form: dict[str, Any]) -> None:
    five, seven = rotation(5, dim, **form), rotation(7, dim, **form)
    np.testing.assert_allclose(five @ seven, rotation(12, dim, **form), atol=1e-14)
    np.testing.assert_allclose(five @ five.T, np.eye(dim), atol=1e-14)
    np.testing.assert_array_equal(rotation(0, dim, **form), np.eye(dim))


@quick
@given(positions, positions, even)
def test_dot_product_depends_on_the_distance_alone(p: int, q: int, dim: int) -> None:
    expected = sum(math.cos((p - q) * 10000 ** (-2 * i / dim)) for i in range(dim // 2))
    assert at(p, dim) @ at(q, dim) == pytest.approx(expected, abs=1e-8)


@quick
@given(positions, even, forms)
def test_squared_norm_is_half_the_width(p: int, dim: int, form: dict[str, Any]) -> None:
    row = at(p, dim, **form)
    assert row @ row == pytest.approx(dim / 2, rel=1e-12)


@quick
@given(positions, even, forms)
def test_a_value_far_out_is_the_formulas_value(p: int, dim: int, form: dict[str, Any]) -> None:
    """The slow formula, one element at a time; float32 code is wrong by 7e-3 at position 100,000."""
    row = at(p, dim, **form)
    half = dim // 2
    for i in {0, half // 2, half - 1}:
        w = 10000 ** (-2 * i / dim) if form["frequencies"] == "paper" else 10000 ** (-i / max(half - 1, 1))
        pair = {"interleaved": (2 * i, 2 * i + 1), "sin-cos": (i, half + i), "cos-sin": (half + i, i)}[form["layout"]]
        assert row[list(pair)] == pytest.approx([math.sin(p * w), math.cos(p * w)], abs=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_short_table_is_the_beginning_of_a_long_one(preset: str, dtype: Any) -> None:
    """To the bit, wherever the blocks of the computation end."""
    dim = 64
    whole = sinusoidal(5000, dim, preset=preset, dtype=dtype)
    for num in (1, 2, 3, 7, 2047, 2048, 2049, 4999):
        part = sinusoidal(num, dim, preset=preset, dtype=dtype)
        np.testing.assert_array_equal(part, whole[: len(part)])


def test_layouts_of_the_same_frequencies_are_a_permutation() -> None:
    interleaved, halves = sinusoidal(100, 10), sinusoidal(100, 10, layout="sin-cos")
    np.testing.assert_array_equal(np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=1), halves)
    np.testing.assert_array_equal(np.roll(halves, 5, axis=1), sinusoidal(100, 10, layout="cos-sin"))
    assert not np.isin(sinusoidal(100, 10, preset="t2t")[1], halves[1]).all()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 8])
def test_every_width_is_finite_or_refused(preset: str, dim: int) -> None:
    if dim % 2 and PRESETS[preset].odd == "error":
        with pytest.raises(UsageError, match=f"width {dim} is odd, and {preset} has no rule") as caught:
            sinusoidal(3, dim, preset=preset)
        assert caught.value.code == "odd-width"
        assert "'ceil'" in str(caught.value)
        return
    table = sinusoidal(3, dim, preset=preset)
    assert table.shape[1] == dim
    assert np.isfinite(table).all()


def test_one_cast_at_the_end() -> None:
    exact = sinusoidal(50, 30, start=99_950, dtype=np.float64)
    np.testing.assert_array_equal(sinusoidal(50, 30, start=99_950), exact.astype(np.float32))
    np.testing.assert_array_equal(sinusoidal(50, 30, start=99_950, dtype=np.float16), exact.astype(np.float16))


def test_start_and_offset_are_two_things() -> None:
    plain = sinusoidal(10, 8)
    np.testing.assert_array_equal(sinusoidal(7, 8, start=3), plain[3:])
    np.testing.assert_array_equal(sinusoidal(8, 8, offset=2), plain)
    np.testing.assert_array_equal(sinusoidal(10, 8, offset=2, start=-2)[2:], plain)
    padded = sinusoidal(8, 8, padding_idx=1)
    assert not padded[1].any()
    np.testing.assert_array_equal(padded[2:], plain[2:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, {}), "num is out of range: expected 1 to 16,777,216, found 0"),
        ((10**20, 4, {}), "num is out of range: expected 1 to 16,777,216, found 100000000000000000000"),
        ((3, 0, {}), "dim is out of range: expected 1 to 16,777,216, found 0"),
        ((3, 4, {"preset": "bert"}), "there is no such preset: expected one of vaswani, xlm"),
        ((3, 4, {"layout": "mixed"}), "there is no such layout: expected one of interleaved"),
        ((3, 4, {"base": 0.0}), "base is out of range: expected 1 or more, found 0.0"),
        ((3, 4, {"start": math.inf}), "start is out of range: expected a finite number, found inf"),
        ((3, 4, {"offset": -1}), "offset is out of range: expected 0 to 16,777,216, found -1"),
        ((3, 4, {"padding_idx": -1}), "padding_idx is out of range"),
        ((3, 4, {"padding_idx": 1, "offset": 1}), "offset is out of range: expected over 1, the padding row"),
        ((3, 4, {"dtype": int}), "dtype is out of range: expected float16, float32 or float64, found int64"),
        ((3, 5, {"preset": "t2t", "odd": "ceil"}), "t2t frequencies end at the last pair"),
    ],
)
def test_arguments_that_make_no_table(arguments: tuple[int, int, dict[str, Any]], message: str) -> None:
    num, dim, options = arguments
    with pytest.raises(UsageError) as caught:
        sinusoidal(num, dim, **options)
    assert message in str(caught.value)


def test_a_lone_sine_cannot_be_rotated() -> None:
    with pytest.raises(UsageError, match="a sine without its cosine"):
        rotation(1, 5, preset="xlm")
    turned = rotation(4, 5, preset="t2t") @ at(3, 5, preset="t2t")
    np.testing.assert_allclose(turned, at(7, 5, preset="t2t"), atol=1e-15)


# Learnable tables.


def philox(counter: int, key: int) -> list[int]:
    """Philox 4x64-10 after Salmon et al. 2011, in plain integers."""
    mask = (1 << 64) - 1
    c = [counter >> 64 * i & mask for i in range(4)]
    k = [key & mask, key >> 64 & mask]
    for _ in range(10):
        a, b = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [b >> 64 ^ c[1] ^ k[0], b & mask, a >> 64 ^ c[3] ^ k[1], a & mask]
        k = [k[0] + 0x9E3779B97F4A7C15 & mask, k[1] + 0xBB67AE8584CAA73B & mask]
    return c


def test_philox_of_this_file_gives_the_published_answer() -> None:
    """Random123's known answer for a zero counter and key."""
    assert philox(0, 0) == [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]


@pytest.mark.parametrize("seed", [0, 7, (1 << 64) - 1])
def test_learned_numbers_are_philox_and_box_muller(seed: int) -> None:
    bits = [word for counter in (1, 2, 3) for word in philox(counter, seed)]
    uniform = [(word >> 11) / (1 << 53) for word in bits]
    expected = []
    for first, second in zip(uniform[0::2], uniform[1::2], strict=True):
        radius = math.sqrt(-2 * math.log(1 - first))
        expected += [0.02 * radius * math.cos(2 * math.pi * second), 0.02 * radius * math.sin(2 * math.pi * second)]
    table = learned(4, 3, seed=seed, dtype=np.float64)
    np.testing.assert_allclose(table.reshape(-1), expected, rtol=1e-12)


def test_learned_tables_have_their_distribution() -> None:
    table = learned(1000, 100, dtype=np.float64)
    assert abs(table.mean()) < 4 * 0.02 / math.sqrt(table.size)
    assert table.std() == pytest.approx(0.02, rel=0.01)
    cut = learned(1000, 100, init="trunc-normal", dtype=np.float64)
    assert np.abs(cut).max() <= 0.04
    assert cut.std() == pytest.approx(0.0176, rel=0.01), "as in BERT's own initialiser"
    inside = np.abs(table) <= 0.04
    np.testing.assert_array_equal(cut[inside], table[inside])


@pytest.mark.parametrize("init", INITS)
def test_learned_tables_are_stable(init: str) -> None:
    table = learned(20, 5, init=init, seed=3, padding_idx=1)
    assert table.shape == (22, 5)
    assert table.dtype == np.float32
    assert not table[1].any()
    np.testing.assert_array_equal(table, learned(20, 5, init=init, seed=3, padding_idx=1))
    np.testing.assert_array_equal(table[:12], learned(10, 5, init=init, seed=3, padding_idx=1))
    if init.endswith("normal"):
        assert not np.array_equal(table, learned(20, 5, init=init, seed=4, padding_idx=1))
    if init == "sinusoidal":
        np.testing.assert_array_equal(table[2:], sinusoidal(20, 5, odd="ceil"))


def test_learned_refuses() -> None:
    with pytest.raises(UsageError, match="there is no such init"):
        learned(3, 4, init="uniform")
    for std, expected in ((-1.0, "0 or more"), (1e39, "so small that all numbers fit float32")):
        with pytest.raises(UsageError, match=f"std is out of range: expected {expected}"):
            learned(3, 4, std=std)
    with pytest.raises(UsageError, match="seed is out of range"):
        learned(3, 4, seed=-1)


# Resizing.


def some_table(rows: int, dim: int, dtype: Any = np.float64) -> Any:
    return learned(rows, dim, std=1.0, seed=rows, dtype=dtype)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (2, 9), (5, 1), (7, 8), (8, 3), (77, 248), (512, 1024)])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_linear_and_cubic_equal_torch(n: int, m: int, align_corners: bool, method: str) -> None:
    torch = pytest.importorskip("torch")
    table = some_table(n, 6)
    columns = torch.from_numpy(table).T
    if method == "linear":
        oracle = torch.nn.functional.interpolate(columns[None], size=m, mode="linear", align_corners=align_corners)[0]
    else:
        oracle = torch.nn.functional.interpolate(
            columns[None, :, :, None], size=(m, 1), mode="bicubic", align_corners=align_corners
        )[0, :, :, 0]
    ours = resize(table, m, method=method, align_corners=align_corners)
    np.testing.assert_allclose(ours, oracle.T.numpy(), rtol=1e-12, atol=1e-12)


def test_hierarchical_equals_the_two_vector_formula() -> None:
    """Su Jianlin: u_i = (p_i - a p_0)/(1-a); position i*n + j is a u_i + (1-a) u_j."""
    n, a = 12, 0.4
    p = some_table(n, 5)
    u = (p - a * p[0]) / (1 - a)
    expected = np.stack([a * u[i] + (1 - a) * u[j] for i in range(n) for j in range(n)])
    ours = resize(p, n * n, method="hierarchical", alpha=a)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)
    assert len(np.unique(ours.round(9), axis=0)) == n * n
    with pytest.raises(UsageError, match="at most 144, the square of 12 positions"):
        resize(p, n * n + 1, method="hierarchical")
    for alpha in (0.0, 0.5, 1.0, math.nan):
        with pytest.raises(UsageError, match=r"alpha is out of range: expected between 0 and 1, but not 0\.5"):
            resize(p, 20, method="hierarchical", alpha=alpha)


def test_stretch_is_what_longclip_does() -> None:
    """The loop of LongCLIP's `load_from_clip`: 20 positions kept, the others four times as dense."""
    p = some_table(77, 4)
    expected = np.empty((248, 4))
    expected[:20] = p[:20]
    for i in range(57):
        above = p[20 + i + 1] if i < 56 else p[76] + (p[76] - p[75])
        for quarter in range(4):
            expected[20 + 4 * i + quarter] = ((4 - quarter) * p[20 + i] + quarter * above) / 4
    ours = resize(p, 248, method="stretch")
    np.testing.assert_allclose(ours, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(ours[:20], p[:20])
    np.testing.assert_array_equal(ours[20::4], p[20:])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("method", ["random", "repeat-last", "tile", "hierarchical"])
def test_methods_that_keep_the_first_rows_do_so_to_the_bit(method: str, dtype: Any) -> None:
    table = some_table(9, 4, dtype)
    table[2, 1] = -0.0
    table[6] = 0
    grown = resize(table, 20, method=method, offset=2)
    assert grown.dtype == dtype
    assert grown.shape == (22, 4)
    assert grown[:9].tobytes() == table.tobytes()
    assert np.isfinite(grown).all()
    shrunk = resize(table, 3, method=method, offset=2)
    assert shrunk.tobytes() == table[:5].tobytes() == resize(table, 3, method="truncate", offset=2).tobytes()


def test_new_rows_of_the_simple_methods() -> None:
    p = some_table(5, 3)
    np.testing.assert_array_equal(resize(p, 12, method="tile"), np.concatenate([p, p, p])[:12])
    np.testing.assert_array_equal(resize(p, 8, method="repeat-last")[5:], np.stack([p[4]] * 3))
    new = resize(p, 20_000, method="random")[5:]
    assert new.std() == pytest.approx(p.std(), rel=0.02)
    np.testing.assert_array_equal(resize(p, 30, method="random"), resize(p, 40, method="random")[:30])
    assert not np.array_equal(resize(p, 30, method="random"), resize(p, 30, method="random", seed=1))


@pytest.mark.parametrize("method", [None, *METHODS])
def test_the_same_length_is_an_equal_copy(method: str | None) -> None:
    table = some_table(6, 3, np.float32)
    table[4, 0] = math.nan
    same = resize(table, 4, method=method, offset=2)
    assert same.tobytes() == table.tobytes()
    assert same is not table
    assert not np.shares_memory(same, table)


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("m", [30, 41, 90])
def test_reserved_rows_are_copied(method: str, m: int) -> None:
    table = some_table(42, 3, np.float32)
    resized = resize(table, m, method=method, offset=2, keep=5)
    assert resized.shape == (m + 2, 3)
    assert resized[:2].tobytes() == table[:2].tobytes()


@quick
@given(st.integers(2, 30), st.integers(1, 100), st.sampled_from(["linear", "cubic", "stretch", "hierarchical", "tile"]))
def test_a_constant_table_stays_constant(n: int, m: int, method: str) -> None:
    if (method == "hierarchical" and m > n * n) or (method == "stretch" and m < 2):
        return
    resized = resize(np.full((n, 2), 0.7), m, method=method, keep=1)
    np.testing.assert_allclose(resized, np.full((m, 2), 0.7), rtol=1e-14)


@quick
@given(st.integers(2, 30), st.integers(2, 100))
def test_a_straight_line_stays_straight(n: int, m: int) -> None:
    line = np.arange(n, dtype=np.float64)[:, None]
    ours = resize(line, m, method="linear", align_corners=True)
    np.testing.assert_allclose(ours[:, 0], np.linspace(0, n - 1, m), atol=1e-12)


@pytest.mark.parametrize(
    ("num", "options", "code", "message"),
    [
        (9, {}, "no-resize-method", "6 positions to 9 needs a method: expected one of truncate, random"),
        (3, {}, "no-resize-method", "6 positions to 3 needs a method"),
        (9, {"method": "truncate"}, "num-range", "expected at most 6, because truncate cannot lengthen"),
        (9, {"method": "nearest"}, "unknown-method", "found 'nearest'"),
        (6, {"method": "nearest"}, "unknown-method", "found 'nearest'"),
        (9, {"method": "stretch"}, "keep-range", "expected 0 to 5, to stretch 6 positions to 9, found 20"),
        (0, {"method": "truncate"}, "num-range", "expected 1 to 16,777,216, found 0"),
        (9, {"method": "tile", "offset": 6}, "no-usable-rows", "expected over 6 rows, found 6"),
    ],
)
def test_resize_refuses(num: int, options: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        resize(some_table(6, 2), num, **options)
    assert caught.value.code == code
    assert message in str(caught.value)


def test_resize_refuses_tables_it_cannot_compute_with() -> None:
    table = some_table(6, 2)
    table[3, 1] = math.nan
    with pytest.raises(InputError, match="row 3 of the table holds nan or inf"):
        resize(table, 9, method="linear")
    assert np.isnan(resize(table, 9, method="tile")[3, 1]), "a copy may hold anything"
    large = np.array([[-6e4], [6e4]], np.float16)
    with pytest.raises(InputError, match="a new value is too large for float16"):
        resize(large, 4, method="hierarchical")
    for nothing in (np.zeros(3), np.zeros((0, 3)), np.zeros((3, 3), int)):
        with pytest.raises(InputError, match="this is no position table"):
            resize(nothing, 4, method="tile")


# Facts.


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dim", [16, 17, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_facts_recognise_each_preset(preset: str, dim: int, dtype: Any) -> None:
    if dim % 2 and PRESETS[preset].odd == "error":
        return
    found = facts(sinusoidal(600, dim, preset=preset, dtype=dtype))
    assert preset in found.presets
    assert found.kind == "sinusoidal"
    assert found.start == 0
    assert found.offset == (2 if preset == "fairseq" else 0)
    alike = {p for p in PRESETS if (PRESETS[p].layout, PRESETS[p].frequencies) == (PRESETS[preset][:2])}
    assert set(found.presets) <= alike
    assert found.norms[1] == pytest.approx(math.sqrt(dim / 2), rel=0.05)


def test_facts_find_the_start_and_what_float32_computed() -> None:
    m2m100 = pytest.importorskip("transformers.models.m2m_100.modeling_m2m_100")
    assert facts(sinusoidal(100, 32, start=1)).start == 1
    assert facts(sinusoidal(100, 32, start=-2, offset=2)).start == -2
    table = m2m100.M2M100SinusoidalPositionalEmbedding.get_embedding(3000, 64, 1).numpy()
    assert facts(table).presets[0] == "fairseq"


def test_facts_of_other_tables() -> None:
    table = learned(100, 16, padding_idx=1)
    table[50, 3] = math.nan
    found = facts(table)
    assert (found.kind, found.presets, found.offset) == ("learned", (), 2)
    assert (found.rows, found.dim, found.dtype, found.zero_rows, found.nonfinite_rows) == (102, 16, "float32", 1, 1)
    norms = np.linalg.norm(np.delete(table, 50, axis=0)[2:].astype(np.float64), axis=1)
    assert found.norms == pytest.approx((norms.min(), np.median(norms), norms.max()))
    zeros = facts(np.zeros((4, 3)))
    assert (zeros.kind, zeros.nearest, zeros.offset, zeros.zero_rows) == ("zeros", None, 0, 4)
    with pytest.raises(InputError, match="this is no position table"):
        facts(np.zeros(3))
