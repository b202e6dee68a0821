"""Give generated inputs to the command line and to Python, and count what must not happen.

``python tests/fuzz/run.py --inputs 2000`` runs the inputs with seeds 0 to 1999 and prints a summary; ``--write FILE``
keeps it. Each input is audited in a process with a limit on time and memory. What must not happen: a traceback or an
exception that is not one of Evenhand's, no answer in time, a process that dies, output that is not whole, a line on
standard error that is not a sentence of Evenhand's, a point estimate that differs from plain numpy.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from inputs import Case, arrow_table, make_case, write_file
from plain import compare

LONGEST = 600.0  # seconds without an answer, on however busy a machine, that end an input
LONGEST_WORK = 120.0  # seconds of computing that count as no answer
MEMORY = 8 * 2**30
FILES = {"findings.json", "junit.xml", "report.html", "report.md"}
DATA = ("outcome", "decision", "score", "groups", "features", "weight", "weight_kind", "positive", "threshold", "cuts",
        "continuous", "intersections", "missing", "rows")  # fmt: skip


def words_of(case: Case, file: Path, out: Path) -> list[str]:
    """Return the command line of a case."""
    o = case.options
    words = ["audit", str(file), "--out", str(out), "--resamples", str(o["resamples"]), "--seed", str(o["seed"])]
    for key in ("outcome", "decision", "score", "weight", "weight_kind", "threshold", "missing", "compare", "margin",
                "alpha", "correction", "fail_on"):  # fmt: skip
        if key in o:
            words += [f"--{key.replace('_', '-')}", str(o[key])]
    if "positive" in o:
        words += ["--positive", str(o["positive"]["outcome"])]
    for key in ("ratio", "intersections"):
        words += [f"--{key}"] if o.get(key) else []
    words += [w for g in o["groups"] for w in ("--group", g)]
    words += [w for g in o.get("continuous", ()) for w in ("--continuous", g)]
    words += [w for g, at in o.get("cuts", {}).items() for w in ("--cut", f"{g}={','.join(map(str, at))}")]
    words += ["--metrics", ",".join(o["metrics"])] if "metrics" in o else []
    words += ["--features", ",".join(o["features"])] if "features" in o else []
    return words + (["--model", f"models:{case.model}"] if case.model else [])


def by_command(case: Case, folder: Path, *, apart: bool) -> dict[str, Any]:
    """Run a case on the command line, in this process or in one of its own."""
    file, out = write_file(case, folder), folder / "out"
    words = words_of(case, file, out)
    if apart:
        environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{Path(__file__).parent}"}
        done = subprocess.run(
            [sys.executable, "-m", "evenhand", *words], capture_output=True, text=True, check=False, env=environment
        )
        code, said = done.returncode, done.stderr
    else:
        from evenhand.cli import run

        shown, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("default")
            code = run(words)
        said = errors.getvalue()
    problems = []
    if code not in (0, 2, 3):
        problems.append(f"exit code {code}: {said.strip()[-1500:]}")
    lines = [line for line in said.splitlines() if line.strip()]
    if code in (0, 2, 3) and any(not line.startswith("evenhand: ") for line in lines):
        problems.append(f"noise: {said.strip()[:600]}")
    if code == 2 and len(lines) != 1:
        problems.append(f"{len(lines)} lines instead of one sentence: {said.strip()[:600]}")
    found = set(os.listdir(out)) if out.exists() else set()
    if code in (0, 3) and found != FILES:
        problems.append(f"output not whole: {sorted(found)}; {said.strip()[:300]}")
    if code == 2 and found:
        problems.append(f"output although refused: {sorted(found)}; {said.strip()[:300]}")
    findings = []
    if code in (0, 3) and "findings.json" in found:
        findings = json.loads((out / "findings.json").read_text(encoding="utf-8"), parse_constant=_refuse)["findings"]
    if any("could not be made" in line for line in lines):
        problems.append(f"a file could not be made: {said.strip()[:300]}")
    return {"code": code, "problems": problems, "findings": findings, "said": said.strip()[:300]}


def _refuse(word: str) -> float:
    raise ValueError(f"{word} in findings.json")


def by_python(case: Case) -> dict[str, Any]:
    """Run a case in Python."""
    import evenhand as eh

    o = case.options
    try:
        data = _read(case, {key: o[key] for key in DATA if key in o})
        plan: dict[str, Any] = {"group": {k: o[k] for k in ("metrics", "compare", "ratio") if k in o}}
        if "margin" in o:
            plan["group"]["margin"] = o["margin"] if not _is_number(o["margin"]) else float(o["margin"])
        plan |= {k: o[k] for k in ("alpha", "correction") if k in o}
        import models

        model = getattr(models, case.model) if case.model else None
        asked = eh.Plan.default(data, model, base=eh.Plan(n_resamples=o["resamples"], seed=o["seed"], **plan))
        run = eh.audit(data, model=model, plan=asked)
        findings = json.loads(run.to_json(), parse_constant=_refuse)["findings"]
    except eh.EvenhandError as error:
        said = str(error)
        return {"code": 2, "problems": [] if said.endswith((".", "?")) else [f"no sentence: {said}"],
                "findings": [], "said": said[:300]}  # fmt: skip
    except MemoryError as error:
        return {"code": 2, "problems": [], "findings": [], "said": f"memory: {error}"}
    return {"code": 0, "problems": [], "findings": findings, "said": ""}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(case: Case, asked: dict[str, Any]) -> Any:
    import duckdb
    import pandas as pd
    import polars as pl

    import evenhand as eh

    columns = case.columns
    if case.form == "pandas":
        return eh.read(pd.DataFrame(columns), **asked)
    if case.form == "nullable":
        return eh.read(pd.DataFrame(columns).convert_dtypes(), **asked)
    if case.form in ("polars", "lazy"):
        frame = pl.from_arrow(arrow_table(columns))
        return eh.read(frame.lazy() if case.form == "lazy" else frame, **asked)
    if case.form == "pyarrow":
        return eh.read(arrow_table(columns), **asked)
    if case.form == "duckdb":
        with duckdb.connect() as connection:
            return eh.read(connection.from_arrow(arrow_table(columns)), **asked)
    if case.form == "mapping":
        return eh.read(columns, **asked)
    if case.form == "lists":
        return eh.read({name: list(values) for name, values in columns.items()}, **asked)
    roles = {r: columns[asked.pop(r)] for r in ("outcome", "decision", "score", "weight") if r in asked}
    groups = {g: columns[g] for g in asked.pop("groups")}
    inputs = {f: columns[f] for f in asked.pop("features", ())} or None
    return eh.AuditData.from_arrays(groups=groups, features=inputs, **roles, **asked)


def run_case(seed: int, *, apart: bool = False) -> dict[str, Any]:
    """Run one input and say what was wrong with the answer."""
    case = make_case(seed)
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = by_command(case, Path(folder), apart=apart) if case.command else by_python(case)
            compared, wrong = compare(case, answer.pop("findings"))
        except Exception:
            answer = {"code": 1, "problems": [f"traceback: {traceback.format_exc()[-1500:]}"], "said": ""}
            compared, wrong = 0, []
    answer["problems"] += [f"estimate: {line}" for line in wrong]
    seconds = time.process_time() - begin
    if seconds > LONGEST_WORK:
        answer["problems"].append(f"slow: {seconds:.0f} s of computing")
    return {**answer, "seed": seed, "form": case.form, "broken": case.broken, "compared": compared,
            "seconds": round(seconds, 2)}  # fmt: skip


class Worker:
    """A process that runs inputs one after the other; it is replaced when it dies or takes too long."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, seed: int) -> dict[str, Any] | str:
        """Return the answer, or why there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], LONGEST)
        if not ready:
            return f"hang: no answer in {LONGEST:g} s"
        line = self.process.stdout.readline()
        return json.loads(line) if line else f"the process died: {self.process.wait()}"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def serve() -> None:
    """Answer seeds from standard input, one JSON line each."""
    from evenhand.report.library import prepare

    answers = os.fdopen(os.dup(1), "w")
    prepare()  # what builds the chart library reserves more addresses than the limit allows, so it is begun before
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        answers.write(json.dumps(run_case(int(line))) + "\n")
        answers.flush()


def main() -> int:
    """Run the inputs asked for and return 1 when anything happened that must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--apart", type=int, default=100, help="every so many inputs a true process of its own")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        serve()
        return 0
    tally: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    slowest, compared, undrawn, worker = 0.0, 0, 0, Worker()
    for seed in range(asked.start, asked.start + asked.inputs):
        alone = asked.apart and seed % asked.apart == 0
        answer = run_case(seed, apart=True) if alone else worker.run(seed)
        if isinstance(answer, str):
            worker.close()
            worker = Worker()
            answer = {"code": None, "problems": [answer], "seed": seed, "compared": 0, "seconds": LONGEST}
        tally[f"exit code {answer['code']}"] += 1
        compared += answer["compared"]
        undrawn += "not drawn" in answer.get("said", "")
        slowest = max(slowest, answer["seconds"])
        for problem in answer["problems"]:
            kinds[problem.split(":")[0]] += 1
            sys.stdout.write(f"--- input {seed} ({make_case(seed).form} {make_case(seed).broken})\n{problem}\n")
            sys.stdout.flush()
    worker.close()
    summary = {"inputs": asked.inputs, "first seed": asked.start, **dict(sorted(tally.items())),
               "estimates compared": compared, "pages that lack a chart and say so": undrawn,
               "slowest seconds": slowest, "problems": dict(kinds)}  # fmt: skip
    sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    if asked.write:
        asked.write.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
