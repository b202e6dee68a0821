"""The one face in which every audit asks a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.models import adapt, audited_model
from evenhand.models.distances import boundary_distance
from evenhand.models.moves import Moves

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
G = RNG.choice(["a", "b"], N)
COLUMNS = {"x": X[:, 0], "z": X[:, 1]}


def read(**options):
    return eh.AuditData.from_arrays(groups={"g": G}, features=COLUMNS, **options)


def test_classes_follow_the_labels_of_the_data():
    words = np.where(Y == 1, "approved", "denied")
    fitted = LogisticRegression().fit(X, words)
    usual = audited_model(fitted, read(outcome=words))
    np.testing.assert_allclose(usual.score(COLUMNS), fitted.predict_proba(X)[:, 0])
    np.testing.assert_array_equal(usual.decide(COLUMNS), fitted.predict(X) == "approved")
    named = audited_model(fitted, read(outcome=words, positive="denied"))
    np.testing.assert_allclose(named.score(COLUMNS), fitted.predict_proba(X)[:, 1])
    assert "Class `approved` of the model `LogisticRegression` is decision 1, as in the outcome column." in usual.notes
    assert audited_model(usual, read(outcome=words)) is usual


def test_unknown_words_are_refused_unless_named():
    fitted = LogisticRegression().fit(X, np.where(Y == 1, "keep", "drop"))
    with pytest.raises(UsageError, match=r"classes `drop` and `keep`.* `positive=\{'model': 'drop'\}`"):
        eh.audit(read(outcome=Y), model=fitted)
    asked = audited_model(fitted, read(outcome=Y, positive={"model": "keep"}))
    np.testing.assert_array_equal(asked.decide(COLUMNS), fitted.predict(X) == "keep")


def test_margins_of_machines_without_probabilities_are_turned_too():
    words = np.where(Y == 1, "approved", "denied")
    fitted = SVC(kernel="linear").fit(X, words)
    asked = audited_model(fitted, read(outcome=words))
    assert not asked.probability
    np.testing.assert_allclose(asked.score(COLUMNS), -fitted.decision_function(X))
    np.testing.assert_array_equal(asked.decide(COLUMNS), asked.score(COLUMNS) > 0)


def test_an_encoder_by_the_alphabet_is_found_out():
    words = np.where(Y == 1, "approved", "denied")
    fitted = LogisticRegression().fit(X, np.unique(words, return_inverse=True)[1])  # approved 0, denied 1
    decisions = np.where(fitted.predict(X) == 0, "approved", "denied")
    with pytest.raises(DataError, match=r"contradicts the column of decisions.* by the alphabet"):
        audited_model(fitted, read(decision=decisions))
    assert any("wrong way round" in note for note in audited_model(fitted, read(outcome=words)).notes)
    right = audited_model(fitted, read(decision=decisions, positive={"model": 0}))
    np.testing.assert_array_equal(right.decide(COLUMNS), decisions == "approved")


def test_agreement_with_decisions_and_scores():
    fitted = LogisticRegression().fit(X, Y)
    same = fitted.predict(X)
    assert audited_model(fitted, read(decision=same)).notes[1:] == ()
    some = same.copy()
    some[:30] = 1 - some[:30]
    (note,) = audited_model(fitted, read(decision=some)).notes[1:]
    assert "differ on 30 of 300 rows (10.0%)" in note
    with pytest.raises(DataError, match="contradicts the column of scores"):
        audited_model(fitted, read(score=1 - fitted.predict_proba(X)[:, 1]))
    with pytest.raises(DataError, match="contradicts the column of decisions"):
        audited_model(lambda M: 1 - fitted.predict_proba(M)[:, 1], read(decision=same))


def test_the_estimator_s_own_rule_decides():
    fitted = FixedThresholdClassifier(LogisticRegression(), threshold=0.2).fit(X, Y)
    asked = audited_model(fitted, read(outcome=Y))
    np.testing.assert_array_equal(asked.decide(COLUMNS), fitted.predict(X))
    line, tuned = fitted.estimator_, boundary_distance(asked, COLUMNS, Moves(scale="none"))
    np.testing.assert_array_equal(tuned.decision, fitted.predict(X))
    far = np.abs(line.decision_function(X) - np.log(0.2 / 0.8)) / np.linalg.norm(line.coef_)
    np.testing.assert_allclose(tuned.distance, far, rtol=1e-6)
    words = np.where(Y == 1, "approved", "denied")
    turned = FixedThresholdClassifier(LogisticRegression(), threshold=0.2).fit(X, words)
    asked = audited_model(turned, read(outcome=words))
    np.testing.assert_array_equal(asked.decide(COLUMNS), turned.predict(X) == "approved")


def test_a_regressor_is_not_cut_in_silence():
    ridge = Ridge().fit(X, Y)
    run = eh.audit(read(outcome=Y), model=ridge, plan=eh.Plan(audits=("group", "projection", "individual")), rng=0)
    group, projection, individual = run.results
    assert {f.measure.split("_global")[0] for f in group} <= {"auc", "mean_residual"}
    (lost,) = projection
    assert lost.verdict == "not_computable"
    assert "from which on the decision is 1 is not known" in lost.reason
    assert [f.measure for f in individual] == ["loss_ratio"]
    assert any("nothing is said about decisions" in note for note in run.data["notes"])
    cut = audited_model(ridge, read(outcome=Y, threshold=0.4))
    np.testing.assert_array_equal(cut.decide(COLUMNS), ridge.predict(X) >= 0.4)
    learned = audited_model(ridge, read(decision=(ridge.predict(X) > 0.3).astype(int)))
    np.testing.assert_array_equal(learned.decide(COLUMNS), ridge.predict(X) > 0.3)


def test_a_threshold_of_the_data_is_the_model_s():
    fitted = LogisticRegression().fit(X, Y)
    probability = fitted.predict_proba(X)[:, 1]
    for data in (read(outcome=Y, threshold=0.3), read(outcome=Y, score=probability, threshold=0.3)):
        np.testing.assert_array_equal(audited_model(fitted, data).decide(COLUMNS), probability >= 0.3)
    other = audited_model(fitted, read(outcome=Y, score=100 * probability, threshold=30))
    np.testing.assert_array_equal(other.decide(COLUMNS), fitted.predict(X))


def test_one_logit_is_cut_at_one_place():
    import torch

    layer = torch.nn.Linear(2, 1).double()
    layer.weight.data, layer.bias.data = torch.tensor([[2.0, 0.5]]).double(), torch.tensor([-0.3]).double()
    logit = X @ [2.0, 0.5] - 0.3
    data = read(outcome=Y)
    asked = audited_model(layer, data)
    np.testing.assert_allclose(asked.score(COLUMNS), 1 / (1 + np.exp(-logit)))
    np.testing.assert_array_equal(asked.decide(COLUMNS), logit >= 0)
    assert any("are taken as log-odds" in note for note in asked.notes)
    run = eh.audit(data, model=layer, plan=eh.Plan(audits=("group", "projection"), group={"metrics": ["accuracy"]}))
    assert run.results[1].options["distance"]["method"] == "linear"
    assert run.results[1].options["distance"]["accuracy"] == "exact"
    two = torch.nn.Linear(2, 2).double()
    two.weight.data = torch.tensor([[0.0, 0.0], [2.0, 0.5]]).double()
    two.bias.data = torch.tensor([0.0, -0.3]).double()
    np.testing.assert_allclose(audited_model(two, data).score(COLUMNS), asked.score(COLUMNS))
    soft = torch.nn.Sequential(layer, torch.nn.Sigmoid())
    for audit in (eh.audit_projection, eh.audit_proxy, eh.audit_individual):
        with pytest.raises(UsageError, match="look like probabilities"):
            audit(data, model=soft)


def boosted_frame():
    job = pd.Categorical(RNG.choice(["clerk", "cook", "nurse"], N), categories=["nurse", "cook", "clerk"])
    zone = pd.Categorical(RNG.choice([10, 20, 30], N))
    frame = pd.DataFrame({"x": X[:, 0], "job": job, "zone": zone, "member": X[:, 1] > 0, "n": RNG.integers(5, size=N)})
    y = ((job == "cook") * 2.0 + (zone == 20) * 1.0 + X[:, 0] + RNG.normal(size=N) > 1).astype(int)
    return frame, y


def test_categories_reach_the_model_as_they_were():
    frame, y = boosted_frame()
    fitted = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype").fit(frame, y)
    expected = fitted.predict_proba(frame)[:, 1]
    seen = []

    class Watching(HistGradientBoostingClassifier):
        def predict_proba(self, given):
            seen.append(given.dtypes)
            return fitted.predict_proba(given)

    watching = Watching(max_iter=2).fit(frame, y)
    data = eh.AuditData.from_arrays(outcome=y, groups={"g": G}, features=frame)
    np.testing.assert_array_equal(audited_model(watching, data).score(data.features), expected)
    assert all((dtypes == frame.dtypes).all() for dtypes in seen)
    plan = eh.Plan(
        audits=("group", "projection", "individual", "proxy", "tail"),
        group={"metrics": ["fnr"]},
        projection={"beside": False, "distances": {"starts": 1, "rounds": 1}},
        individual={"similarity": ["x"]},
        proxy={"folds": 2, "max_rows": 100, "max_steps": 0},
        tail={"flip": {"a": {"member": 0.0}, "b": {"member": 1.0}}, "generator": "none"},
        n_resamples=99,
    )
    run = eh.audit(data, model=fitted, plan=plan, rng=0)
    assert not [f.reason for f in run.findings if "could not run" in f.reason]


def test_texts_from_a_file_become_the_categories_a_model_wants():
    frame, y = boosted_frame()
    frame = frame[["x", "job"]]
    fitted = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype").fit(frame, y)
    texts = {"x": frame["x"].to_numpy(), "job": frame["job"].astype(str).to_numpy(dtype=object)}
    np.testing.assert_array_equal(adapt(fitted, texts).score(texts), fitted.predict_proba(frame)[:, 1])


def test_onnx_classes_are_learned_from_its_answers():
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    words = np.where(Y == 1, "approved", "denied")
    fitted = LogisticRegression().fit(X, words)
    for zipmap in (True, False):
        made = to_onnx(fitted, X.astype(np.float32), options={"zipmap": zipmap})
        session = InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        asked = audited_model(session, read(outcome=words))
        np.testing.assert_allclose(asked.score(COLUMNS), fitted.predict_proba(X)[:, 0], atol=1e-6)
        assert [str(c) for c in asked.classes] == ["approved", "denied"]


def test_a_model_is_asked_about_all_rows_once():
    asked = []

    def model(M):
        asked.append(len(M))
        return 1 / (1 + np.exp(-M[:, 0]))

    eh.audit(read(outcome=Y), model=model, plan=eh.Plan(audits=("group",), group={"metrics": ["fnr"]}))
    assert asked == [N]


class Counted:
    """Counts the rows that a method of an estimator is asked about."""

    def __init__(self, method):
        self.method, self.rows = method, 0

    def __call__(self, given):
        self.rows += len(given)
        return self.method(given)


@pytest.mark.parametrize(
    "kind",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=2, random_state=0),
        ExtraTreeClassifier(max_depth=2, random_state=0),
        ExtraTreesClassifier(n_estimators=2, random_state=0),
        RandomForestClassifier(n_estimators=2, max_depth=9, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        MLPClassifier((3,), solver="lbfgs", max_iter=30, tol=1.0, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_scores_say_what_a_model_decides_and_it_is_asked_again_only_where_they_are_even(kind):
    words = np.where(Y == 1, "approved", "denied")
    fitted = kind.fit(X, words)
    asked = audited_model(fitted, read(outcome=words))
    assert asked.halved
    method = fitted.predict
    fitted.predict = Counted(method)
    answers = asked.remember(dict(COLUMNS))
    np.testing.assert_array_equal(answers.decision, method(X) == "approved")
    assert fitted.predict.rows == (answers.score == 0.5).sum()


def test_even_probabilities_are_decided_as_the_model_decides_them():
    halves = np.repeat([0.0, 1.0], 150)
    tree = DecisionTreeClassifier().fit(halves[:, None], np.tile([0, 1], 150))
    assert set(tree.predict_proba(halves[:, None])[:, 1]) == {0.5}
    data = eh.AuditData.from_arrays(outcome=Y, groups={"g": G}, features={"x": halves})
    np.testing.assert_array_equal(audited_model(tree, data).decide(data.features), np.zeros(300))


class Strict(RandomForestClassifier):
    """A forest that decides by a rule of its own."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.9).astype(int)]


def test_a_model_made_from_one_that_follows_its_probabilities_is_asked_for_decisions():
    own = Strict(5, random_state=0).fit(X, Y)
    asked = audited_model(own, read(outcome=Y))
    assert not asked.halved
    np.testing.assert_array_equal(asked.decide(dict(COLUMNS)), own.predict(X) == 1)
    assert not np.array_equal(own.predict(X) == 1, own.predict_proba(X)[:, 1] > 0.5)


def test_models_that_decide_by_another_rule_are_asked_for_it():
    for kind in (SVC(), FixedThresholdClassifier(LogisticRegression(), threshold=0.3)):
        assert not audited_model(kind.fit(X, Y), read(outcome=Y)).halved


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("X is infinite.\nA page of advice."), r"raised ValueError .* z: X is infinite\. It must"),
        (KeyError(), r"raised KeyError .* z: KeyError\. It must"),
        (SystemExit(0), r"raised SystemExit .* z: 0\. It must"),
    ],
)
def test_what_a_model_raises_is_one_sentence_and_ends_no_process(error, said):
    """A model that leaves with `sys.exit(0)` would let a gate pass that has seen nothing."""

    def model(rows):
        raise error

    with pytest.raises(DataError, match=said) as caught:
        adapt(model, COLUMNS)
    assert "\n" not in str(caught.value)
