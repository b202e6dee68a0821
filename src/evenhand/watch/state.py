"""The state of a watch as a small file: its plan, what was fixed with the first batch, and the sums of each batch.

All evidence follows from these sums: nothing else is kept. The file is replaced in one step, so that a process that is
killed leaves the file of before or of after, never a part of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, UsageError
from evenhand.files import write_atomic
from evenhand.watch.batches import Batch
from evenhand.watch.plan import WatchPlan

FORMAT = "evenhand-watch/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """A plan, what was fixed with the first batch, and the batches in the order in which they came."""

    plan: WatchPlan
    metrics: tuple[str, ...] = ()  # those watched; none before the first batch
    groups: Mapping[str, tuple[str, ...]] | None = None  # attribute to its groups, the reference last
    batches: tuple[Batch, ...] = ()

    def knows(self, batch: Batch) -> bool:
        """Say whether a batch was counted before; refuse other rows under a name that is taken."""
        for known in self.batches:
            if known.name == batch.name:
                if known.fingerprint == batch.fingerprint:
                    return True
                raise DataError(
                    f"Batch `{batch.name}` was counted before with other rows ({known.rows:,}, now {batch.rows:,}). A "
                    "batch that was seen cannot be changed: give the new rows a name of their own."
                )
        return False

    def with_batch(self, batch: Batch) -> State:
        """Return the state with one more batch; refuse one in which a text means 1 that meant 0 before."""
        for known in self.batches:
            for role, (one, zero) in batch.labels.items():
                before = known.labels.get(role, ((), ()))
                turned = [text for text in one if text in before[1]] + [text for text in zero if text in before[0]]
                if turned:
                    now, then = (1, 0) if turned[0] in one else (0, 1)
                    raise DataError(
                        f"In batch `{batch.name}` the {role} `{turned[0]}` counts as {now}, in batch `{known.name}` it "
                        f"counted as {then}. Say which label means 1 with `positive=`, in a new state file."
                    )
        return replace(self, batches=(*self.batches, batch))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        groups = None if self.groups is None else {name: list(labels) for name, labels in self.groups.items()}
        return {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "plan_hash": self.plan.hash,
            "metrics": list(self.metrics),
            "groups": groups,
            "batches": [batch.to_dict() for batch in self.batches],
        }

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        write_atomic(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")


def read_state(path: Path) -> State:
    """Read a state file, or say in one sentence why it cannot be used.

    Parameters
    ----------
    path : Path
        A file that `State.write` made.

    Returns
    -------
    State
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        known = data["format"]
    except OSError as error:
        raise DataError(f"The state file `{path}` cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"`{path}` is not the state file of a watch. Name another file, or a new one.") from None
    if known != FORMAT:
        raise DataError(
            f"The state file `{path}` has the format `{known}`, and this version reads `{FORMAT}`. Use the version of "
            "Evenhand that wrote it, or begin a new file."
        )
    try:
        plan = WatchPlan.of(data["plan"])
        groups = None if data["groups"] is None else {name: tuple(labels) for name, labels in data["groups"].items()}
        batches = tuple(Batch.from_dict(batch) for batch in data["batches"])
        written = data["plan_hash"]
        metrics = tuple(data["metrics"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"The state file `{path}` is damaged ({error}). Restore it from a copy, or begin anew."
        ) from None
    if written != plan.hash:
        raise DataError(
            f"The plan in the state file `{path}` was changed by hand: its name is `{plan.hash}` and was `{written}`. "
            "Restore the file from a copy, or begin a new one."
        )
    return State(plan=plan, metrics=metrics, groups=groups, batches=batches)


def check_plan(state: State, asked: WatchPlan, path: Path) -> None:
    """Refuse to go on with another plan than the one a watch began with."""
    if state.plan.hash == asked.hash:
        return
    old, new = state.plan.to_dict(), asked.to_dict()
    changed = [name for name in old if old[name] != new[name]]
    first = changed[0]
    raise UsageError(
        f"The watch in `{path}` began with another plan: `{first}` was {json.dumps(old[first])} and is now "
        f"{json.dumps(new[first])}. Evidence counts only under the plan it began with: go on with that one, or begin a "
        "new state file."
    )
