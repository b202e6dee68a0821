"""Store one example of each audit for the openings of its page: ``python evidence/audit_examples.py``.

It runs the audits of ``evenhand demo`` on the logistic model, keeps the few numbers that ``evidence/openings.py`` shows
in ``evidence/audit_examples.json``, and then writes the openings and their pictures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openings import write

import evenhand as eh
from evenhand.cli.demo import _audited

WOMEN, MEN = "sex=Female", "sex=Male"


def kept(run: eh.AuditRun) -> dict[str, Any]:
    """Return the numbers that the openings show."""
    results = {result.audit: result.to_dict() for result in run.results}

    def found(audit: str, measure: str) -> tuple[dict[str, Any], dict[str, Any]]:
        result = results[audit]
        pairs = zip(result["findings"], result["evidence"], strict=True)
        return next((f, e) for f, e in pairs if f["measure"] == measure and WOMEN in (*f["groups"], WOMEN))

    fnr, fnr_evidence = found("group", "fnr")
    _, projection = found("projection", "equal_opportunity")
    loss, _ = found("individual", "loss_ratio")
    error, _ = found("individual", "error_ratio")
    gap, _ = found("proxy", "fpr")
    level, tail = found("tail", "ecd")
    subgroup = next(f for f in results["scan"]["findings"] if f["measure"] == "fnr")
    place = results["scan"]["findings"].index(subgroup)
    return {
        "group": {"values": fnr_evidence["values"], "interval": fnr["interval"], "verdict": fnr["verdict"]},
        "projection": {"rows": run.data["rows_used"], "changes": projection["changes"]["by_group"]},
        "individual": {
            "loss": loss["estimate"],
            "loss_verdict": loss["verdict"],
            "error": error["estimate"],
            "error_verdict": error["verdict"],
            "tolerance": loss["margin"],
        },
        "proxy": {
            "gap": gap["estimate"],
            "features": {
                f["measure"].partition(":")[2]: f["estimate"]
                for f in results["proxy"]["findings"]
                if ":" in f["measure"]
            },
        },
        "tail": {"values": tail["values"], "horizon": tail["horizon"], "interval": level["interval"]},
        "scan": {"subgroup": subgroup["groups"][0], "values": results["scan"]["evidence"][place]["values"]},
    }


def main() -> None:
    """Run the audits, store the numbers, write the openings."""
    stored = json.dumps(kept(_audited("logistic model", 0)), indent=1)
    Path(__file__).with_name("audit_examples.json").write_text(stored + "\n", encoding="utf-8")
    write()


if __name__ == "__main__":
    main()
