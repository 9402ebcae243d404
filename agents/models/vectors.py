from __future__ import annotations

import numpy as np

from agents.models.base import Vectors


def unit_length(rows: Vectors) -> Vectors:
    """(n, d) float32 with each row scaled to length 1. A row of zeros becomes the first axis: it has no direction, but must have a length."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    empty = (lengths[:, 0] == 0) | ~np.isfinite(lengths[:, 0])
    if empty.any():
        rows = rows.copy()
        rows[empty] = 0.0
        rows[empty, 0] = 1.0
        lengths = np.where(empty[:, None], np.float32(1.0), lengths)
    scaled: Vectors = (rows / lengths).astype(np.float32, copy=False)
    return scaled
