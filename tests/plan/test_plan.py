"""The plan: checked when made, the same in TOML and Python, and what is chosen by default."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import evenhand as eh
from evenhand import Plan, UsageError
from evenhand.plan import toml_key, toml_value

FULL = Plan(
    audits=("group", "tail"),
    alpha=0.01,
    correction="gatekeeping",
    seed=7,
    n_resamples=499,
    reference={"sex": 'M"\n\x7f', "sex × race": "F × x"},
    data={"outcome": "y", "groups": ["sex", "race"], "intersections": True, "cuts": {"age": [25, 40.5]}},
    group={"metrics": ["fnr", "auc"], "margin": "four-fifths", "midp": False},
    tail={"horizon": 1e4, "flip": {"F": {"sex_F": 1}, "M": {"sex_F": 0}}},
    notes=("Agreed on Monday.",),
)


def data(**more):
    rng = np.random.default_rng(0)
    n = 60
    given = {"outcome": np.arange(n) % 2, "groups": {"sex": np.where(np.arange(n) % 3, "F", "M")}} | more
    return eh.AuditData.from_arrays(**{k: v(rng, n) if callable(v) else v for k, v in given.items()})


def test_toml_round_trip(tmp_path):
    path = tmp_path / "audit.toml"
    path.write_text(FULL.to_toml(), encoding="utf-8")
    again = Plan.from_toml(path)
    assert again == FULL
    assert again.hash == FULL.hash
    assert Plan.from_dict(json.loads(json.dumps(FULL.to_dict()))) == FULL


def test_hash_depends_on_what_is_asked_and_on_nothing_else():
    assert len(FULL.hash) == 64
    assert Plan().hash == Plan(audits=["group"], group={}).hash
    assert (
        Plan(group={"metrics": ("fnr",), "margin": 0.05}).hash == Plan(group={"margin": 0.05, "metrics": ["fnr"]}).hash
    )
    assert Plan(seed=np.int64(3)).hash == Plan(seed=3).hash
    others = [
        Plan(alpha=0.01),
        Plan(seed=1),
        Plan(group={"metrics": ["fnr"]}),
        Plan(correction="bh"),
        Plan(notes=["x"]),
    ]
    assert len({p.hash for p in (Plan(), *others)}) == 6


def test_hash_is_the_same_in_another_process():
    code = (
        "import evenhand as eh, numpy as np\n"
        "from evenhand.intake import read\n"
        "plan = eh.Plan(individual={'similarity': np.eye(2)}, tail={'flip': read})\n"
        "print(plan.hash)"
    )
    from evenhand.intake import read

    here = Plan(individual={"similarity": np.eye(2)}, tail={"flip": read})
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert there == here.hash
    assert here.hash != Plan(individual={"similarity": np.eye(3)}, tail={"flip": read}).hash


def test_objects_of_ones_own_count_by_their_content():
    from sklearn.linear_model import LogisticRegression

    one, two, three = (Plan(proxy={"nuisance": LogisticRegression(C=c)}).hash for c in (1.0, 1.0, 2.0))
    assert one == two != three


def test_objects_of_ones_own_cannot_be_written_down():
    with pytest.raises(UsageError, match="cannot be written into a plan's file"):
        toml_value(np.eye(2))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"audits": ()}, "names no audit"),
        ({"audits": ("group", "prxy")}, "Did you mean `proxy`"),
        ({"audits": ("group", "group")}, "named twice"),
        ({"alpha": 0}, "`alpha` must lie between 0 and 1"),
        ({"alpha": True}, "`alpha` must lie between 0 and 1"),
        ({"correction": "max_t"}, "`correction` is `max_t`; allowed: .*`max-t`"),
        ({"seed": 1.5}, "`seed` must be a whole number"),
        ({"n_resamples": 50}, "`n_resamples` must be a whole number of at least 99"),
        ({"n_resamples": 99.5}, "`n_resamples` must be a whole number"),
        ({"reference": {"sex": 1}}, "labels as text"),
        ({"data": {"outcom": "y"}}, "Did you mean `outcome`"),
        ({"data": {"missing": "droop"}}, "`data.missing` is `droop`; allowed: .*Did you mean `drop`"),
        ({"data": {"model": 3}}, "`data.model`"),
        ({"data": {"threshold": "high"}}, "`data.threshold` is 'high', which is a text; allowed: float"),
        ({"group": {"metrics": ["fnrr"]}}, "Did you mean `fnr`"),
        ({"group": {"metrics": [3]}}, "`group.metrics`"),
        ({"group": {"margin": -1}}, "Margin `-1`"),
        ({"group": {"level": 95}}, "`group.level` must lie between 0 and 1"),
        ({"group": {"rng": 3}}, "`rng` belongs to the whole plan"),
        ({"projection": {"criterion": "eo"}}, "no criterion `eo`"),
        ({"projection": {"bandwidth": 0}}, "`projection.bandwidth` must be a number above 0"),
        ({"individual": {"steps": 0}}, "`individual.steps` must be a whole number of at least 1"),
        ({"individual": {"limits": "normall"}}, "Did you mean `normal`"),
        ({"proxy": {"measure": "fprr"}}, "`fprr` is not known"),
        ({"proxy": {"folds": 1}}, "`proxy.folds` must be a whole number of at least 2"),
        ({"tail": {"horizen": 100}}, "no option `horizen`. Did you mean `horizon`"),
        ({"tail": {"favourable": "up"}}, "`tail.favourable` is `up`; allowed: `high`, `low`"),
        ({"tail": {"k": "many"}}, "`tail.k` is 'many', which is a text; allowed: int"),
    ],
)
def test_what_is_wrong_is_said_when_the_plan_is_made(options, says):
    with pytest.raises(UsageError, match=says):
        Plan(**options)


def test_keys_and_values_in_toml():
    assert toml_key("a-b_1") == "a-b_1"
    assert toml_key("") == '""'
    assert toml_value([True, 1, 1e-7, "é"]) == '[true, 1, 1e-07, "é"]'


@pytest.mark.parametrize(
    ("given", "model", "audits"),
    [
        ({"decision": np.arange(60) % 2}, None, ("group",)),
        ({"decision": np.arange(60) % 2, "features": {"x": np.arange(60.0)}}, None, ("group", "proxy")),
        (
            {"decision": np.arange(60) % 2, "features": {"x": np.arange(60.0)}},
            len,
            ("group", "projection", "individual", "proxy"),
        ),
        (
            {"decision": np.arange(60) % 2, "features": {"x": np.arange(60.0), "sex": np.arange(60) % 2}},
            len,
            ("group", "projection", "individual", "proxy", "tail"),
        ),
        (
            {"decision": np.arange(60) % 2, "features": {"x": np.full(60, "a"), "sex": np.arange(60) % 2}},
            len,
            ("group", "projection", "individual", "proxy", "tail"),
        ),
        ({"features": {"x": np.arange(60.0)}}, len, ("group", "projection", "individual", "proxy")),
    ],
)
def test_default_runs_what_the_columns_allow_and_says_why_not_the_rest(given, model, audits):
    plan = Plan.default(data(**given), model, base=Plan(alpha=0.01))
    assert plan.audits == audits
    assert plan.alpha == 0.01
    told = " ".join(plan.notes)
    for name in ("group", "projection", "individual", "proxy", "tail", "scan"):
        assert (f"the {name} audit, which" in told) == (name not in audits)


def test_default_asks_what_needs_no_outcome_where_there_is_none():
    rows = data(outcome=None, decision=np.arange(60) % 2, features={"x": np.arange(60.0)})
    plan = Plan.default(rows, len, base=Plan(proxy={"folds": 3}))
    assert plan.proxy == {"folds": 3, "measure": "sp"}
    assert plan.projection == {"criterion": "statistical_parity"}
