"""A file of decisions, as text: what every test of the command line starts from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

ROWS = 600


def table(**columns: object) -> dict[str, object]:
    rng = np.random.default_rng(0)
    sex = np.tile(["F", "M"], ROWS // 2)
    y = rng.random(ROWS) < 0.5
    d = rng.random(ROWS) < np.where(y, np.where(sex == "F", 0.5, 0.9), 0.2)
    found: dict[str, object] = {
        "sex": sex,
        "race": rng.choice(["x", "y", "z"], ROWS),
        "age": rng.integers(18, 80, ROWS),
        "y": y.astype(int),
        "d": d.astype(int),
        "p": np.clip(0.3 * y + 0.3 * d + 0.4 * rng.random(ROWS), 0, 1).round(4),
    }
    return found | columns


@pytest.fixture
def decisions(tmp_path: Path) -> Callable[..., Path]:
    """Write the file, with columns added or replaced."""

    def write(**columns: object) -> Path:
        made = table(**columns)
        lines = [",".join(made), *(",".join(map(str, row)) for row in zip(*made.values(), strict=True))]  # type: ignore[call-overload]
        path = tmp_path / "decisions.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
