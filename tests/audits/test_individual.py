from __future__ import annotations

import importlib
import json
import math

import numpy as np
import onnxruntime
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.audits.individual.moving import checkpoints
from evenhand.audits.individual.people import _units
from evenhand.errors import DataError, UsageError
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.rectifier_pieces import Pieces
from evenhand.models.gradient import CallableGradient, GradientModel
from evenhand.similarity import Discounted, ExpertMatrix, MatchedPairs, SensitiveSubspace

N = 300


def arrays(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    group = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0.6, "a", np.where(rng.random(n) < 0.5, "b", "c"))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0).astype(int)
    return {"outcome": y, "groups": {"g": group}, "features": X}


def take(a, index):
    return {"outcome": a["outcome"][index], "groups": {"g": a["groups"]["g"][index]}, "features": a["features"][index]}


def logistic(w, b=0.0):
    w = np.asarray(w, dtype=float)
    return CallableGradient(lambda X: X @ w + b, lambda X: np.tile(w, (len(X), 1)), link="logit")


MODEL = logistic([1.0, 1.0, 0.0])


def audit(a=None, *, model=MODEL, steps=50, refits=3, rng=0, **options):
    weight = {k: options.pop(k) for k in ("weight", "weight_kind") if k in options}
    data = eh.AuditData.from_arrays(**(arrays() if a is None else a), **weight)
    return audit_individual(data, model=model, steps=steps, refits=refits, rng=rng, **options)


def findings(result):
    return json.dumps([f.to_dict() for f in result])


# What every audit promises.


def test_same_seed_same_bytes():
    first = json.dumps(audit().to_dict())
    assert first == json.dumps(audit().to_dict())


def test_the_seed_moves_nothing_but_the_bootstrap_of_pairs():
    assert json.dumps(audit(rng=0).to_dict()) == json.dumps(audit(rng=1).to_dict())
    left, right = ({f"x{j}": arrays(40, seed)["features"][:, j] for j in range(3)} for seed in (3, 4))
    pairs = {"similarity": MatchedPairs(left, right)}
    one, two = audit(rng=0, **pairs), audit(rng=1, **pairs)
    assert findings(one) == findings(two)
    assert one.to_dict()["evidence"] != two.to_dict()["evidence"]


@pytest.mark.parametrize("method", ["euler", "search"])
def test_row_order_is_irrelevant(method):
    order = np.random.default_rng(5).permutation(N)
    assert findings(audit(method=method)) == findings(audit(take(arrays(), order), method=method))


def test_names_of_groups_are_irrelevant():
    a = arrays()
    renamed = {**a, "groups": {"g": np.array([{"a": "z", "b": "y", "c": "x"}[v] for v in a["groups"]["g"]])}}
    for f, g in zip(audit(a), audit(renamed), strict=True):
        assert (f.estimate, f.pvalue) == pytest.approx((g.estimate, g.pvalue), rel=1e-9)


def test_integer_weight_equals_repeated_rows():
    a = arrays()
    weight = np.random.default_rng(1).integers(1, 4, N)
    weighted = audit(a, weight=weight, weight_kind="frequency")
    assert findings(weighted) == findings(audit(take(a, np.repeat(np.arange(N), weight))))


def test_batches_do_not_change_the_answer():
    whole = audit()
    for rows in (1, 17, 5000):
        for f, g in zip(whole, audit(batch_rows=rows), strict=True):
            assert (f.estimate, f.pvalue) == pytest.approx((g.estimate, g.pvalue), rel=1e-10)


def test_inputs_are_left_as_found_and_results_survive_json():
    a = arrays()
    before = a["features"].copy()
    result = audit(a, examples=2)
    assert np.array_equal(a["features"], before)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert eh.AuditResult.from_dict(plain).to_dict() == plain
    for f in result:
        assert f.verdict in set(eh.Verdict)
        assert f.reason.endswith(".")
        assert 0 < f.pvalue <= f.pvalue_adjusted <= 1


# The method.


def test_statistic_is_algorithm_1_of_the_paper():
    """A plain loop over people and steps, as printed (with the squared distance), gives the same T_n."""
    a = arrays(60)
    lam, step, steps = 20.0, 0.01, 40
    V = np.array([1.0, 0.5, 0.0]) / np.sqrt(1.25)
    S = np.eye(3) - np.outer(V, V)
    w = np.array([1.0, 1.0, 0.0])
    ratios, wrong = [], []
    for x0, y in zip(a["features"], a["outcome"], strict=True):
        x = x0.copy()
        for _ in range(steps):
            p = 1 / (1 + math.exp(-float(x @ w)))
            x = x + step * ((p - y) * w - 2 * lam * S @ (x - x0))
        loss = [-math.log(q if y else 1 - q) for q in (1 / (1 + math.exp(-float(z @ w))) for z in (x, x0))]
        ratios.append(loss[0] / loss[1])
        wrong.append([(z @ w > 0) != y for z in (x, x0)])
    found = audit(
        a,
        similarity=ExpertMatrix(S),
        penalty=lam,
        step=step,
        steps=steps,
        limits="normal",
        scale="none",
        metric_rows="shared",
    )
    r = np.array(ratios)
    assert found[0].estimate == pytest.approx(r.mean(), rel=1e-9)
    assert found.evidence[0].T_n == pytest.approx(r.mean() - 1.6448536 * r.std(ddof=1) / np.sqrt(60), rel=1e-8)
    after, before = np.array(wrong, dtype=float).T
    assert found[1].estimate == pytest.approx(after.mean() / before.mean())


def test_euler_and_adaptive_agree_and_the_error_is_measured():
    euler, adaptive = (audit(steps=200, limit="none", method=m, flow_tolerance=1e-6) for m in ("euler", "adaptive"))
    assert euler[0].estimate == pytest.approx(adaptive[0].estimate, rel=5e-3)
    error = euler.evidence[0].map.flow_error
    gap = abs(euler[0].estimate - adaptive[0].estimate)
    measured = abs(error["mean_ratio"] - error["mean_ratio_halved"])
    assert 0.3 * gap < 2 * measured < 3 * gap  # halving leaves half the first-order error


@pytest.mark.parametrize("n", [16, 64, 256, 1024, 4096])
def test_the_attack_does_not_depend_on_the_sample_size(n):
    """inFairness divides each person's gradient by n: ratio 192, 28, 5.6, 1.87, 1.15 for these n, then "fair"."""
    base = arrays(16)
    a = take(base, np.arange(n) % 16)
    found = audit(a, similarity=["x0"], steps=150)
    assert found[0].estimate == pytest.approx(audit(base, similarity=["x0"], steps=150)[0].estimate, rel=1e-12)
    assert found[0].verdict == "disparity"


def test_disparity_equivalence_and_doubt():
    unfair = audit(model=logistic([2.0, 1.0, 0.0]), similarity=["x0"])
    fair = audit(model=logistic([0.0, 1.0, 0.5]), similarity=["x0"])
    assert [str(f.verdict) for f in unfair] == ["disparity", "disparity"]
    assert [str(f.verdict) for f in fair] == ["equivalent", "equivalent"]
    assert fair[0].estimate == pytest.approx(1.0, abs=0.01)  # the price of distance is high, not infinite
    edge = audit(arrays(40), model=logistic([1.2, 1.0, 0.0]), similarity=["x0"], steps=60)[0]
    assert edge.verdict == "inconclusive"
    assert "would have been shown" in edge.reason
    assert "rows would decide" in edge.reason


def test_equivalence_is_not_claimed_from_few_rows():
    few = audit(arrays(60), model=logistic([0.0, 1.0, 0.5]), similarity=["x0"])
    assert few[0].estimate == pytest.approx(1.0, abs=0.01)
    assert few[0].verdict == "inconclusive"
    assert "equivalence is not claimed" in few[0].reason


def test_too_long_steps_are_refused_with_the_limit():
    with pytest.raises(UsageError, match=r"must stay below 0\.02"):
        audit(step=0.03)
    # Asked for all the same, people oscillate until the loss is gone: that is no sign of equal treatment.
    forced = audit(step=0.03, allow_unstable=True, limit="none")
    assert [str(f.verdict) for f in forced] == ["not_computable"] * 2
    assert "can only raise it" in forced[0].reason
    assert audit(step=0.03, method="adaptive")[0].estimate > 0


def test_curve_parts_range_movement_and_pairs_are_shown():
    result = audit(steps=300, examples=3, limit="none")
    e = result.evidence[0]
    curve = e.curve
    assert curve[0].loss_ratio == pytest.approx(1.0)
    assert np.all(np.diff([p.loss_ratio for p in curve]) > 0)
    assert curve[-1].T_n == pytest.approx(e.T_n)
    last = curve[-1]
    assert (last.low, last.high) == pytest.approx((result[0].interval.low, e.one_sided_high))
    high = result.evidence[1].one_sided_high
    assert (last.error_low, last.error_high) == pytest.approx((result[1].interval.low, high))
    assert [p.time for p in curve] == pytest.approx([0.01 * k for k in checkpoints(300)])
    assert [p.name for p in e.by_part] == ["0", "1", "g=a", "g=b", "g=c"]
    assert sum(p.rows for p in e.by_part[2:]) == N
    total = sum(p.rows * p.loss_ratio for p in e.by_part[2:]) / N
    assert total == pytest.approx(result[0].estimate)
    assert 0 < e.off_range.directions <= e.off_range.either < 1
    assert e.movement.columns[0].column in ("x0", "x1")
    pairs = e.pairs
    assert [p.ratio for p in pairs] == sorted((p.ratio for p in pairs), reverse=True)
    assert pairs[0].loss_after / pairs[0].loss_before == pytest.approx(pairs[0].ratio)
    assert audit().evidence[0].pairs == ()  # rows only on request
    assert (
        audit(take(arrays(), np.arange(9)), similarity=["x0"]).evidence[0].movement.columns == ()
    )  # a mean over one is a row


def test_metric_is_learned_apart_or_the_sharing_is_stated():
    cross, shared = audit(), audit(metric_rows="shared")
    assert cross.evidence[0].metric.learned_on == "the other half of the rows"
    assert shared.evidence[0].metric.learned_on == "the audited rows themselves"
    assert cross.evidence[0].metric.angle_between_halves_degrees > 0
    own = audit(metric_rows=eh.AuditData.from_arrays(**arrays(500, seed=9)))
    assert own.evidence[0].metric.learned_on == "rows of their own"
    sense = cross.evidence[0].metric.sensitivity
    assert len(sense["loss_ratio_change"]) == len(sense["largest_angle_degrees"]) == 3


def test_crossfitting_uses_the_other_half():
    """Recompute one half by hand: its metric comes from the rows of the other half only."""
    from evenhand.audits.individual.people import gather, second_half

    a = arrays()
    data = eh.AuditData.from_arrays(**a)
    people = gather(data, MODEL, scale="none", loss=None, clip=0.0)
    second = second_half(people.marks, np.unique(people.marks))
    one, two = np.flatnonzero(~second), np.flatnonzero(second)
    assert np.intersect1d(one, two).size == 0
    assert one.size + two.size == people.rows.X.shape[0]
    assert abs(one.size - two.size) <= 1
    metrics = [SensitiveSubspace().fit(people.rows.take(h)).form for h in (two, one)]
    total = 0.0
    for index, form in zip((one, two), metrics, strict=True):
        x0, y = people.rows.X[index], people.view.y[index]
        x = x0.copy()
        for _ in range(50):
            p = 1 / (1 + np.exp(-(x @ [1.0, 1.0, 0.0])))
            x = x + 0.01 * ((p - y)[:, None] * [1.0, 1.0, 0.0] - 100 * (x - x0) @ form.dense())
        m0, m1 = (np.where(y == 1, 1, -1) * (z @ [1.0, 1.0, 0.0]) for z in (x0, x))
        total += float(people.count[index] @ (np.logaddexp(0, -m1) / np.logaddexp(0, -m0)))
    assert audit(a, scale="none", limit="none")[0].estimate == pytest.approx(total / N, rel=1e-9)


def test_people_can_be_held_inside_the_observed_range_and_columns_frozen():
    far, held = audit(steps=500, limit="none"), audit(steps=500, limit="range")
    assert far.evidence[0].off_range.directions > 0.1
    # People who start outside the range of the other half are not brought back.
    assert held.evidence[0].off_range.directions < 0.05
    assert held.evidence[0].off_range.stopped > 0.1
    assert held[0].estimate < far[0].estimate
    assert "end outside the observed range" in far[0].reason
    frozen = audit(similarity=["x0"], freeze=["x0", "x1"], model=logistic([1.0, 1.0, 0.0]))
    assert frozen[0].estimate == pytest.approx(1.0)


def test_undefined_ratios_are_never_dropped():
    def certain(X):  # exactly 0 or 1 for half the people
        return np.where(X[:, 1] > 0, 1.0, np.clip(0.5 + 0.2 * X[:, 0], 0.01, 0.99))

    result = audit(model=certain, similarity=["x0"])
    loss, error = result
    assert loss.verdict == "not_computable"
    assert math.isnan(loss.estimate)
    undefined = int((arrays()["features"][:, 1] > 0).sum())
    assert loss.counts["all"]["undefined_ratios"] == undefined
    assert f"for {undefined} of {N} rows" in loss.reason
    assert error.verdict != "not_computable"
    clipped = audit(model=certain, similarity=["x0"], clip=0.01)[0]
    assert math.isfinite(clipped.estimate)


def test_nan_from_a_model_is_not_called_equivalent():
    result = audit(model=lambda X: np.full(len(X), np.nan), similarity=["x0"])
    assert [f.verdict for f in result] == ["not_computable"] * 2
    assert "prediction is not a number" in result[0].reason
    assert f"not a number for {N} of {N} rows" in result[1].reason
    broken = logistic([np.nan, 1.0, 0.0])
    assert [f.verdict for f in audit(model=broken, similarity=["x0"])] == ["not_computable"] * 2


def test_nobody_wrong_has_no_error_ratio():
    a = arrays()
    a["features"][:, 1] += 2 * np.sign(a["features"][:, 1] - 0.001)
    a["outcome"] = (a["features"][:, 1] > 0).astype(int)
    result = audit(a, model=logistic([0.0, 50.0, 0.0]), similarity=["x0"])
    assert result[1].verdict == "not_computable"
    assert "Nobody is misjudged" in result[1].reason


def test_few_errors_use_the_exact_test():
    result = audit(model=logistic([0.6, 1.0, 0.0]), similarity=["x0"])
    assert result.evidence[1].test == "exact binomial given the errors"
    counts = result[1].counts["all"]
    assert counts["became_right"] == 0
    assert counts["wrong_after"] == counts["wrong_before"] + counts["became_wrong"]


def test_black_boxes_are_searched_and_say_so():
    def steps(X):
        return np.clip(0.5 + 0.3 * np.sign(X[:, 0]) + 0.1 * np.sign(X[:, 1]), 0.05, 0.95)

    result = audit(model=steps, similarity=["x0"])
    assert result.evidence[0].map.kind == "search along the sensitive directions"
    assert result[0].verdict == "disparity"
    assert result.evidence[0].off_range.directions == pytest.approx(0.0, abs=0.02)
    # By hand: the best a search can do is to take the worse sign of x0.
    X, y = arrays()["features"], arrays()["outcome"]
    loss = lambda p: -np.log(np.where(y == 1, p, 1 - p))  # noqa: E731
    worst = np.maximum(loss(steps(X * [-1, 1, 1])), loss(steps(X)))
    assert result[0].estimate == pytest.approx(np.mean(worst / loss(steps(X))), rel=0.02)
    blind = audit(model=lambda X: np.clip(0.5 + 0.2 * X[:, 1], 0.05, 0.95), similarity=["x0"])
    assert blind[0].estimate == pytest.approx(1.0)


def test_an_onnx_session_is_searched_as_the_model_it_came_from(tmp_path):
    a = arrays()
    forest = GradientBoostingClassifier(n_estimators=15, max_depth=2, random_state=0)
    forest.fit(a["features"].astype(np.float32), a["outcome"])
    kind = [("X", FloatTensorType([None, 3]))]
    onnx = to_onnx(forest, initial_types=kind, options={"zipmap": False}, target_opset=17)
    session = onnxruntime.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])
    found = audit(a, model=session, similarity=["x0"])
    assert found.evidence[0].map.kind == "search along the sensitive directions"
    own = audit(a, model=forest, similarity=["x0"])
    for one, two in zip(found, own, strict=True):
        assert one.estimate == pytest.approx(two.estimate, rel=0.02)  # the session computes in single precision
        assert one.verdict == two.verdict
    (tmp_path / "forest.onnx").write_bytes(onnx.SerializeToString())
    assert findings(audit(a, model=str(tmp_path / "forest.onnx"), similarity=["x0"])) == findings(found)
    assert findings(audit(a, model=session, similarity=["x0"])) == findings(found)


def test_forests_are_searched_in_categories_that_exist():
    pd = importlib.import_module("pandas")
    ensemble = importlib.import_module("sklearn.ensemble")
    rng = np.random.default_rng(2)
    job = rng.choice(["clerk", "nurse", "smith"], N)
    sex = np.where((job == "nurse") ^ (rng.random(N) < 0.1), "f", "m")
    age = rng.integers(20, 60, N).astype(float)
    y = ((job == "nurse") + (age > 40) + rng.random(N) > 1.5).astype(int)
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encode = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(sparse_output=False), ["job"])])
    forest = make_pipeline(encode, ensemble.RandomForestClassifier(30, min_samples_leaf=5, random_state=0))
    forest.fit(pd.DataFrame({"age": age, "job": job}), y)
    data = eh.AuditData.from_arrays(outcome=y, groups={"sex": sex}, features={"age": age, "job": job})
    result = audit_individual(data, model=forest, clip=0.01, examples=5, rng=0)
    assert result[0].verdict == "disparity"
    jobs = {m["after"] for p in result.evidence[0].pairs for m in p.moved if m["column"] == "job"}
    assert jobs <= {"clerk", "nurse", "smith"}
    weights = [m["weight_toward"] for p in result.evidence[0].pairs for m in p.moved if m["column"] == "job"]
    assert weights
    assert set(weights) == {1.0}


def test_numbers_on_different_scales_are_standardised_and_it_is_said():
    a = arrays()
    wide = {**a, "features": a["features"] * [1e4, 1.0, 1.0] + [4e4, 0.0, 0.0]}
    model = logistic([1e-4, 1.0, 0.0], -4.0)
    result = audit(wide, model=model, similarity=["x0"], steps=200)
    same = audit(a, similarity=["x0"], steps=200, scale="standard")
    assert result[0].estimate == pytest.approx(same[0].estimate, rel=1e-9)
    assert any("were standardised" in note for note in result.notes)
    # Left as they are, income in dollars hardly moves and an unfair model looks harmless.
    assert audit(wide, model=model, similarity=["x0"], steps=200, scale="none")[0].estimate < 1.01
    pair = audit(wide, model=model, similarity=["x0"], steps=200, examples=1).evidence[0].pairs[0].moved[0]
    assert abs(pair["change"]) > 1000


def test_regression_and_several_classes():
    a = arrays()
    rng = np.random.default_rng(1)
    number = {**a, "outcome": a["features"][:, 0] + a["features"][:, 1] + rng.normal(size=N)}
    value = CallableGradient(
        lambda X: X @ [1.0, 1.0, 0.0], lambda X: np.tile([1.0, 1.0, 0.0], (len(X), 1)), link="identity"
    )
    result = audit(number, model=value, similarity=["x0"], steps=10)
    assert [f.measure for f in result] == ["loss_ratio"]
    assert result[0].estimate > 1.25
    absolute = audit(number, model=value, similarity=["x0"], steps=10, loss="absolute")
    assert absolute[0].estimate != result[0].estimate
    three = {**a, "outcome": np.digitize(a["features"][:, 0], [-0.5, 0.5])}
    W = np.array([[1.0, 0.0, -1.0], [0.2, 0.0, 0.2], [0.0, 0.0, 0.0]])
    many = CallableGradient(lambda X: -X @ W, lambda X: np.tile(-W.T, (len(X), 1, 1)), link="logit", classes=(0, 1, 2))
    result = audit(three, model=many, similarity=["x0"])
    assert [f.measure for f in result] == ["loss_ratio", "error_ratio"]
    assert [p.name for p in result.evidence[0].by_part[:3]] == ["0", "1", "2"]


def test_sampling_weights_are_used():
    a = arrays()
    weight = np.random.default_rng(1).uniform(0.5, 3.0, N)
    result = audit(a, weight=weight, similarity=["x0"])
    assert result[0].estimate != pytest.approx(audit(a, similarity=["x0"])[0].estimate)
    assert result.evidence[1].test == "linear form (Fieller)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.9}, "`tolerance` must be a number above 1"),
        ({"method": "newton"}, "`method` is `newton`"),
        ({"alpha": 2}, "`alpha` must lie between"),
        ({"steps": 0}, "`steps` must be a whole number of at least 1"),
        ({"freeze": ["x9"]}, "`x9` is not an input"),
        ({"similarity": np.eye(7)}, "for 7 inputs and the model has 3"),
        ({"method": "euler", "model": lambda X: np.full(len(X), 0.5)}, "no gradient is known"),
        ({"batch_rows": 0}, "`batch_rows` must be a whole number of at least 1"),
        ({"steps": 10.5}, "`steps` must be a whole number of at least 1; got 10.5"),
        ({"step": "small"}, "`step` is 'small', which is a text; allowed: float"),
        ({"penalty": -1}, "`penalty` must be a number of at least 0"),
        ({"metric_rows": "half"}, "`metric_rows` is `half`; allowed: `crossfit`, `shared`, or AuditData"),
        ({"freeze": ["x0", "x1", "x2"]}, "nobody could be moved"),
        ({"freeze": "x9"}, "`x9` is not an input"),
        ({"similarity": ["x9"]}, "`x9` is not an input"),
        ({"similarity": SensitiveSubspace(["sx"])}, "asks for the attribute `sx`"),
        ({"model": LogisticRegression()}, "`LogisticRegression` is not fitted"),
        ({"model": LogisticRegression}, "is a class"),
        ({"model": lambda X: 1 / 0}, "raised ZeroDivisionError"),
        ({"model": lambda X: 3 + X[:, 0]}, "are no probabilities"),
        ({"model": "nowhere.onnx"}, "does not exist"),
    ],
)
def test_wrong_requests_are_refused(options, message):
    with pytest.raises((UsageError, DataError), match=message):
        audit(**options)


def test_missing_outcome_or_features_are_refused():
    a = arrays()
    with pytest.raises(DataError, match="needs what really happened"):
        audit_individual(
            eh.AuditData.from_arrays(decision=a["outcome"], groups=a["groups"], features=a["features"]), model=MODEL
        )
    with pytest.raises(DataError, match="Name the inputs with `features=`"):
        audit_individual(eh.AuditData.from_arrays(outcome=a["outcome"], groups=a["groups"]), model=MODEL)


def test_groups_too_small_to_learn_a_metric_are_not_computable_with_a_reason():
    a = arrays(40)
    a["groups"]["g"] = np.array(["a"] * 39 + ["b"])
    result = audit(a)
    assert [str(f.verdict) for f in result] == ["not_computable"] * 2
    assert "Attribute `g` has 1 group among" in result[0].reason
    tiny = audit(arrays(5), similarity=["x0"])
    assert "too few" in tiny[0].reason


def test_progress_is_reported():
    seen = []
    audit(progress=seen.append)
    done = [[int(word) for word in text.split() if word.isdigit()] for text in seen]
    assert done[-1][0] == done[-1][1]
    assert [d for d, _ in done] == sorted(d for d, _ in done)


def test_torch_modules_work_end_to_end():
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).train()
    from evenhand.models.gradient_torch import TorchGradient

    plain = audit(model=module, similarity=["x0"])
    module[0].register_forward_hook(lambda *_: None)  # a hook may do anything: only autograd can follow
    auto = audit(model=TorchGradient(module), similarity=["x0"])
    assert plain[0].estimate == pytest.approx(auto[0].estimate, rel=1e-4)
    assert module.training
    assert auto.evidence[0].map.model == "torch module (autograd)"


def test_a_forward_function_of_its_own_gives_the_findings_of_the_same_layers_in_a_row():
    torch = importlib.import_module("torch")
    nn = torch.nn
    from evenhand.models.gradient_torch import TorchGradient

    torch.manual_seed(0)
    row = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    row[1].running_mean.normal_()

    class Own(nn.Module):
        def __init__(self, ends):
            super().__init__()
            self.first, self.norm, self.last, self.ends = row[0], row[1], row[3], ends

        def forward(self, x):
            h = nn.functional.relu(self.norm(self.first(x.view(x.size(0), -1))))
            return self.ends(nn.functional.dropout(h, 0.5, self.training) @ self.last.weight.T + self.last.bias)

    expected = audit(model=row, similarity=["x0"])
    same = {
        "its layers as matrices": (Own(lambda out: out), Own(lambda out: out.squeeze(-1))),
        "autograd": (Own(lambda out: out if bool((out == out).all()) else -out),),  # a branch
    }
    said = {"its layers as matrices": TorchGradient(Own(lambda out: out.sigmoid()), link="probability")}
    for how, models in same.items():
        for model in (*models, *([said[how]] if how in said else [])):
            found = audit(model=model, similarity=["x0"])
            assert found.evidence[0].map.model == f"torch module ({how})"
            for one, two in zip(found, expected, strict=True):
                assert one.estimate == pytest.approx(two.estimate, rel=1e-9 if how != "autograd" else 1e-5)


def test_networks_with_a_shortcut_are_moved_as_by_their_gradient_alone(monkeypatch):
    """Rectifiers on log-odds, on probabilities, and a regression: each against the same function in single steps."""
    monkeypatch.setattr("evenhand.kernels.flow.gradient_flow.WORTH", 10**9)
    rng = np.random.default_rng(3)
    a = arrays()
    number = {**a, "outcome": a["features"][:, 0] + rng.normal(size=N)}
    for outputs, link, data in ((1, "logit", a), (2, "logit", a), (2, "probability", a), (1, "identity", number)):
        net = Perceptron(
            weights=(rng.normal(size=(3, 8)), (0.02 if link == "probability" else 0.5) * rng.normal(size=(8, outputs))),
            biases=(rng.normal(size=8), np.full(outputs, 0.5)),
        )

        def jacobian(X, net=net, outputs=outputs):
            pull = net.pullback(X)[1]
            return np.stack([pull(np.tile(row, (len(X), 1))) for row in np.eye(outputs)], axis=1)

        slow = CallableGradient(net.outputs, jacobian, link=link)
        quick = GradientModel(network=net, link=link)
        kind = {"similarity": ["x0"], "step": 0.005, "clip": 0.05 if link == "probability" else 0.0}
        for one, two in zip(audit(data, model=quick, **kind), audit(data, model=slow, **kind), strict=True):
            assert one.estimate == pytest.approx(two.estimate, rel=1e-9)


@pytest.mark.parametrize("limit", ["none", "range"])
def test_halved_steps_of_a_few_people_are_made_one_by_one(limit, monkeypatch):
    rng = np.random.default_rng(4)
    net = Perceptron(
        weights=(rng.normal(size=(3, 8)), rng.normal(size=(8, 1))), biases=(rng.normal(size=8), np.full(1, 0.5))
    )
    asked = []
    monkeypatch.setattr(Pieces, "follow", lambda *a, own=Pieces.follow: asked.append(a[1].size) or own(*a))
    kind = {"similarity": ["x0"], "limit": limit}
    quick = audit(model=GradientModel(network=net, link="logit"), **kind)
    assert asked == ([N] if limit == "none" else [])  # and not those whose steps are halved
    monkeypatch.setattr("evenhand.kernels.flow.gradient_flow.WORTH", 10**9)
    slope = CallableGradient(net.outputs, lambda X: net.pullback(X)[1](np.ones((len(X), 1))), link="logit")
    plain = audit(model=slope, **kind)
    for name in ("displacement_error_largest", "displacement_error_median", "mean_ratio_halved"):
        one, two = (result.evidence[0].map.flow_error[name] for result in (quick, plain))
        assert one == pytest.approx(two, rel=1e-6)


@pytest.mark.parametrize("decimals", [1, 17])  # with ties in the first column, and without
def test_equal_people_are_one_in_the_order_of_their_inputs(decimals):
    key = np.random.default_rng(0).normal(size=(200, 2)).round(decimals)
    key = np.concatenate([key, key[:0] if decimals > 1 else key[:50]])
    units, place = _units(key)
    expected, where = np.unique(key, axis=0, return_inverse=True)
    np.testing.assert_array_equal(units, expected)
    np.testing.assert_array_equal(place, where.reshape(-1))


def test_discounted_directions_by_array():
    direction = Discounted([[1.0, 1.0, 0.0]])
    assert audit(similarity=direction)[0].estimate > audit(similarity=["x2"])[0].estimate


# What a user gets by default.


def trained(n, seed, *, gap=0.0, given=False, coefficient=None):
    """A logistic model trained on other rows; groups that differ by `gap` in one input, and are perhaps an input."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, 2 * n)
    X = rng.normal(size=(2 * n, 5))
    X[:, 0] += gap * (group - 0.5)
    y = (X @ [1.0, 1.0, -0.5, 0.5, 0.0] + rng.logistic(size=2 * n) > 0).astype(int)
    frame = {f"x{j}": X[:, j] for j in range(5)} | ({"sex": group.astype(float)} if given else {})
    matrix = np.column_stack(list(frame.values()))
    model = LogisticRegression().fit(matrix[:n], y[:n])
    if coefficient is not None:
        model.coef_[0, -1] = coefficient
    names = np.where(group, "f", "m")
    data = eh.AuditData.from_arrays(
        outcome=y[n:], groups={"sex": names[n:]}, features={k: v[n:] for k, v in frame.items()}
    )
    return data, model


def test_groups_that_the_inputs_do_not_predict_give_no_verdict():
    data, model = trained(400, 1)
    result = audit_individual(data, model=model, rng=0)
    assert [str(f.verdict) for f in result] == ["not_computable"] * 2
    assert "do not predict the protected groups better than chance" in result[0].reason
    assert result.evidence[0].predicted[0].pvalue > 0.05


def test_a_metric_that_is_taken_as_known_keeps_all_its_directions():
    """To repeat a published setting: without refits nothing is asked about the metric that was learned."""
    data, model = trained(400, 1)
    result = audit_individual(data, model=model, refits=0, rng=0)
    assert result[0].estimate > 1
    assert result.evidence[0].to_dict()["metric"]["rank"] == 1
    assert not any("not shown to predict" in note for note in result.notes)


def test_random_groups_are_never_a_disparity_blind_or_given():
    for seed in range(6):
        for given in (False, True):
            data, model = trained(300, seed, given=given)
            result = audit_individual(data, model=model, steps=200, rng=0)
            assert not any(f.verdict == "disparity" for f in result)
    # Given the column, people are moved from one group to the other: the model's coefficient of it is small.
    assert result[0].estimate == pytest.approx(1.0, abs=0.15)
    assert any("not shown to predict sex" in note for note in result.notes)


def test_a_column_with_coefficient_zero_changes_nothing():
    data, model = trained(600, 3, given=True, coefficient=0.0)
    result = audit_individual(data, model=model, rng=0)
    assert result[0].estimate == pytest.approx(1.0, abs=0.02)
    assert [str(f.verdict) for f in result] == ["equivalent"] * 2
    # Where other inputs differ a little between groups, they are moved too, and no farther than that.
    data, model = trained(600, 3, gap=0.3, given=True, coefficient=0.0)
    model.coef_[0, 0] = 0.0
    assert not any(f.verdict == "disparity" for f in audit_individual(data, model=model, rng=0))


def test_a_model_that_uses_the_group_is_found():
    data, model = trained(600, 3, given=True, coefficient=1.5)
    result = audit_individual(data, model=model, rng=0)
    assert result[0].verdict == "disparity"
    end = result.evidence[0].movement.columns[0]
    assert end.column == "sex"
    assert end.mean_size <= 1.0 + 1e-9  # from one group to the other, no farther


def test_people_go_no_farther_than_the_groups_differ():
    data, model = trained(2000, 5, gap=0.5)
    result = audit_individual(data, model=model, examples=2000, refits=0, rng=0)
    reach = float(result.evidence[0].metric.reach[0])
    assert reach == pytest.approx(0.5, abs=0.15)
    moves = [max(abs(m["change"]) for m in p.moved) for p in result.evidence[0].pairs if p.moved]
    assert max(moves) <= 0.7
    sizes = [audit_individual(data, model=model, limit=k, refits=0, rng=0)[0].estimate for k in ("range", "none")]
    assert result[0].estimate < sizes[0] <= sizes[1]


def test_interval_and_test_agree():
    data, model = trained(600, 3, gap=1.0)
    for level in (0.5, 0.9, 0.95, 0.99):
        result = audit_individual(data, model=model, tolerance=1.2, level=level, refits=20, rng=0)
        for f, e in zip(result, result.evidence, strict=True):
            assert f.interval.high == math.inf
            assert (f.interval.low > 1.2) == (f.pvalue <= 1 - level)
            assert (e.one_sided_high < 1.2) == (e.equivalence_pvalue <= 1 - level)
            assert f.margin == 1.2


def test_the_metrics_error_is_inside_the_pvalue():
    data, model = trained(600, 3, gap=0.6)
    sure = audit_individual(data, model=model, tolerance=1.1, refits=0, rng=0)
    honest = audit_individual(data, model=model, tolerance=1.1, rng=0)
    for f, g, e in zip(sure, honest, honest.evidence, strict=True):
        assert f.estimate == g.estimate
        assert f.interval.low > g.interval.low
        assert f.pvalue < g.pvalue
        assert e.metric_error > 0


def test_few_errors_have_no_ratio():
    a = arrays()
    a["features"][:, 1] += 2 * np.sign(a["features"][:, 1] - 0.001)
    a["outcome"] = (a["features"][:, 1] > 0).astype(int)
    a["outcome"][:4] = 1 - a["outcome"][:4]
    result = audit(a, model=logistic([0.0, 50.0, 0.0]), similarity=["x0"])
    assert result[1].verdict == "not_computable"
    assert "at least 10 are needed" in result[1].reason
