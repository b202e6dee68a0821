"""Draw how the cost of a scan grows with attributes and conditions: ``python evidence/scan_growth.py``.

Reads benchmarks/scan.json and writes docs/images/scan-growth.svg.
"""

from __future__ import annotations

import json
from pathlib import Path

from drawings import picture

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Draw processor seconds against attributes, one line for each number of conditions."""
    rows = json.loads((ROOT / "benchmarks" / "scan.json").read_text())["growth"]
    values = [{**row, "depth": f"{row['depth']} conditions"} for row in rows]
    spec = {
        "data": {"values": values},
        "width": 560,
        "height": 260,
        "background": "white",
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "attributes", "type": "quantitative", "title": "attributes that are combined"},
            "y": {"field": "seconds", "type": "quantitative", "scale": {"type": "log"}, "title": "processor seconds"},
            "color": {"field": "depth", "type": "nominal", "title": "described by at most"},
        },
    }
    (ROOT / "docs" / "images" / "scan-growth.svg").write_text(picture(spec))


if __name__ == "__main__":
    main()
