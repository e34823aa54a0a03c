"""Position tables: sinusoidal ones, learnable ones, and learned ones made longer or shorter.

A table is `float[rows, dim]`. Its first `offset` rows are reserved and no token ever looks them up; the first token of
a text takes row `offset`. Sinusoidal row k holds the angle `start + k`, the reserved rows included:

    angle of pair i at row k   a = (start + k) * w_i
    frequencies "paper"        w_i = base^(-2i/dim)            Vaswani et al. 2017, section 3.5
    frequencies "t2t"          w_i = base^(-i/max(h - 1, 1))   tensor2tensor, fairseq; h = floor(dim/2)
    layout "interleaved"       sin a_0, cos a_0, sin a_1, cos a_1, ..
    layout "sin-cos"           sin a_0, sin a_1, .., cos a_0, cos a_1, ..
    layout "cos-sin"           the halves the other way round
    odd width "ceil"           one sine more than cosines
    odd width "zero-pad"       h pairs and a last column of zeros

Everything is computed in float64 and cast once: in float32 an angle near 100,000 is wrong by 0.007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arguments import Float64 as Float64
    from .arguments import Matrix as Matrix
    from .arguments import check_size as check_size
    from .recognition import Facts as Facts
    from .recognition import facts as facts
    from .resizing import resize as resize
    from .tables import learned as learned
    from .tables import rotation as rotation
    from .tables import sinusoidal as sinusoidal

# Names are looked up when they are used: the command line needs the choices of `key_styles` and no numpy.
_HOME = {
    "Facts": "recognition",
    "Float64": "arguments",
    "Matrix": "arguments",
    "check_size": "arguments",
    "facts": "recognition",
    "learned": "tables",
    "resize": "resizing",
    "rotation": "tables",
    "sinusoidal": "tables",
}

__all__ = [
    "Facts",
    "Float64",
    "Matrix",
    "check_size",
    "facts",
    "learned",
    "resize",
    "rotation",
    "sinusoidal",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
