from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.models import adapt
from evenhand.models.gradient import CallableGradient, prefixed, rescaled
from evenhand.models.gradient_view import view_model
from evenhand.models.input_space import Input, InputSpace, numeric_space

pd = importlib.import_module("pandas")

import onnxruntime  # noqa: E402
from skl2onnx import to_onnx  # noqa: E402
from skl2onnx.common.data_types import FloatTensorType  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler  # noqa: E402

RNG = np.random.default_rng(0)
N = 240
FRAME = {
    "age": RNG.integers(18, 70, N).astype(float),
    "income": RNG.normal(3e4, 8e3, N),
    "job": RNG.choice(["clerk", "nurse", "smith"], N),
}
Y = (FRAME["age"] / 20 + (FRAME["job"] == "nurse") + RNG.normal(size=N) > 2.6).astype(float)
Y3 = np.digitize(FRAME["age"] + RNG.normal(0, 8, N), [32, 50]).astype(float)
VALUE = FRAME["income"] / 1e4 + FRAME["age"] / 30 + RNG.normal(size=N)
NUMBERS = ["age", "income"]


def viewed(model, features, outcome, kind, **asked):
    return view_model(adapt(model, features, numeric_outcome=kind != "binary"), features, outcome, kind, **asked)


def frame(columns=FRAME):
    return pd.DataFrame(columns)


def pipeline(last, scaler=None):
    encode = ColumnTransformer(
        [("n", scaler or StandardScaler(), NUMBERS), ("c", OneHotEncoder(sparse_output=False), ["job"])]
    )
    return make_pipeline(encode, last)


def mlp(kind=MLPClassifier, **options):
    return kind(hidden_layer_sizes=(7, 5), max_iter=40, random_state=0, **options)


def loss_gradient(view, X):
    out, pull = view.network.pullback(X)
    return pull(view.loss.slope(out, view.y))


def assert_gradient(view, X, tolerance=1e-6):
    """Gradient of the loss by the inputs against central differences, to the issue's 1e-6."""
    g = loss_gradient(view, X)
    h = 1e-5
    for j in range(X.shape[1]):
        e = np.eye(X.shape[1])[j] * h
        up, down = (np.exp(view.loss.log_value(view.network.outputs(X + s * e), view.y)) for s in (1, -1))
        slope = (up - down) / (2 * h)
        scale = np.maximum(1.0, np.abs(slope))
        smooth = np.abs(loss_gradient(view, X + e)[:, j] - loss_gradient(view, X - e)[:, j]) < 1e-3 * scale
        assert smooth.mean() > 0.9  # a ReLU kink inside the difference is no fault of the gradient
        np.testing.assert_allclose((g[:, j] / scale)[smooth], (slope / scale)[smooth], atol=tolerance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (LogisticRegression(), Y),
        (LogisticRegression(), Y3),
        (mlp(activation="relu"), Y),
        (mlp(activation="tanh"), Y3),
        (mlp(activation="logistic"), Y),
        (LinearRegression(), VALUE),
        (mlp(MLPRegressor), VALUE),
    ],
    ids=lambda v: type(v).__name__ if hasattr(v, "fit") else "",
)
def test_gradients_in_pipelines_against_finite_differences(model, y):
    fitted = pipeline(model).fit(frame(), y)
    kind = "binary" if set(np.unique(y)) == {0.0, 1.0} else "numeric"
    view = viewed(fitted, FRAME, y, kind)
    X = view.space.encode(FRAME)
    assert_gradient(view, X)
    if hasattr(fitted, "predict_proba"):
        wrong = fitted.predict(frame()) != y
        np.testing.assert_array_equal(view.loss.wrong(view.network.outputs(X), view.y), wrong)
        plain = -np.log(fitted.predict_proba(frame())[np.arange(N), view.y.astype(int)])
        np.testing.assert_allclose(np.exp(view.loss.log_value(view.network.outputs(X), view.y)), plain, rtol=1e-8)
    else:
        np.testing.assert_allclose(view.network.outputs(X)[:, 0], fitted.predict(frame()), rtol=1e-10)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=lambda s: type(s).__name__)
def test_movement_is_told_in_the_users_columns_and_units(scaler):
    fitted = pipeline(LogisticRegression(), scaler).fit(frame(), Y)
    space = viewed(fitted, FRAME, Y, "binary").space
    assert space.names == ("age", "income", "job=clerk", "job=nurse", "job=smith")
    first = {"age": np.array([40.0]), "income": np.array([3e4]), "job": np.array(["clerk"])}
    later = {"age": np.array([45.0]), "income": np.array([2.9e4]), "job": np.array(["smith"])}
    told = {row["column"]: row for row in space.movement(space.encode(first)[0], space.encode(later)[0])}
    assert told["age"]["change"] == pytest.approx(5)
    assert told["age"]["after"] == pytest.approx(45)
    assert told["income"]["change"] == pytest.approx(-1000)
    assert (told["job"]["before"], told["job"]["after"]) == ("clerk", "smith")


def test_steps_that_cannot_be_followed_keep_their_own_names():
    from sklearn.preprocessing import PolynomialFeatures

    last = LogisticRegression(max_iter=500)
    fitted = make_pipeline(StandardScaler(), PolynomialFeatures(2), last).fit(frame()[NUMBERS], Y)
    view = viewed(fitted, {k: FRAME[k] for k in NUMBERS}, Y, "binary")
    assert view.space.names == ("1", "age", "income", "age^2", "age income", "income^2")
    assert_gradient(view, view.space.encode({k: FRAME[k] for k in NUMBERS}))


@pytest.mark.parametrize("last", [LogisticRegression(), HistGradientBoostingClassifier(max_iter=3)])
def test_people_are_moved_before_projections_never_behind_them(last):
    from sklearn.decomposition import PCA

    from evenhand.mitigation.project import ProjectSensitive

    numbers = {k: FRAME[k] for k in NUMBERS}
    for steps in ([PCA(1, whiten=True), StandardScaler()], [ProjectSensitive([[1.0, 0.0]])]):
        fitted = make_pipeline(StandardScaler(), *steps, last).fit(frame()[NUMBERS], Y)
        view = viewed(fitted, numbers, Y, "binary")
        X = view.space.encode(numbers)
        assert view.space.names == ("age", "income")
        p = view.score(X)
        p = p[:, -1] if p.shape[1] == 2 else 1 / (1 + np.exp(-p[:, 0]))
        np.testing.assert_allclose(p, fitted.predict_proba(frame()[NUMBERS])[:, 1], rtol=1e-9)
        if view.network is not None:
            assert_gradient(view, X)
    np.testing.assert_allclose(view.score(X + np.array([5.0, 0.0])), view.score(X))  # age is projected out


def test_models_without_gradient_are_black_boxes():
    forest = pipeline(RandomForestClassifier(5, random_state=0)).fit(frame(), Y)
    view = viewed(forest, FRAME, Y, "binary", clip=0.01)
    assert view.network is None
    X = view.space.encode(FRAME)
    np.testing.assert_allclose(view.score(X), forest.predict_proba(frame()))
    boosted = HistGradientBoostingClassifier(max_iter=5).fit(frame()[NUMBERS], Y)
    view = viewed(boosted, {k: FRAME[k] for k in NUMBERS}, Y, "binary")
    np.testing.assert_allclose(
        view.score(view.space.encode(FRAME)), boosted.predict_proba(frame()[NUMBERS]), rtol=1e-12
    )


def test_a_callable_on_columns_with_text_goes_there_and_back():
    seen = []

    def remote(table):
        seen.append(table)
        return np.where(table["job"] == "nurse", 0.8, 0.3)

    view = viewed(remote, FRAME, Y, "binary")
    X = view.space.encode(FRAME)
    np.testing.assert_allclose(view.score(X)[:, 0], remote(frame()))
    np.testing.assert_allclose(seen[-2]["age"], FRAME["age"])
    assert list(seen[-2].columns) == list(FRAME)


def test_functions_with_their_jacobian():
    W = RNG.normal(size=(2, 3))

    def probability(X):
        e = np.exp(X @ W)
        return e / e.sum(axis=1, keepdims=True)

    def jacobian(X):
        p = probability(X)
        return p[:, :, None] * (W.T[None] - (p @ W.T)[:, None, :])

    numbers = {"a": RNG.normal(size=N), "b": RNG.normal(size=N)}
    view = viewed(CallableGradient(probability, jacobian, classes=(0, 1, 2)), numbers, Y3, "numeric")
    assert view.task == "multiclass"
    assert_gradient(view, view.space.encode(numbers))
    wrong = CallableGradient(probability, lambda X: np.zeros((len(X), 2)), classes=(0, 1, 2))
    with pytest.raises(UsageError, match="`jacobian` returned shape"):
        wrong.pullback(np.zeros((4, 2)))


def test_rescaled_networks_have_rescaled_gradients():
    net = CallableGradient(lambda X: X @ [2.0, -1.0], lambda X: np.tile([2.0, -1.0], (len(X), 1)), link="logit")
    scaled = rescaled(net, np.array([1.0, 2.0]), np.array([10.0, 0.1]))
    out, pull = scaled.pullback(np.ones((1, 2)))
    assert out[0, 0] == pytest.approx(2 * 11 - 2.1)
    assert pull(np.ones((1, 1)))[0].tolist() == pytest.approx([20.0, -0.1])


def test_matrices_are_rewritten_where_others_are_wrapped():
    rng = np.random.default_rng(0)
    net = Perceptron(
        weights=(rng.normal(size=(2, 4)), rng.normal(size=(4, 1))), biases=(rng.normal(size=4), np.ones(1))
    )
    jacobian = lambda X: net.pullback(X)[1](np.ones((len(X), 1)))  # noqa: E731
    other = CallableGradient(net.outputs, jacobian, link="logit")
    center, unit, matrix, X = rng.normal(size=2), rng.normal(size=2), rng.normal(size=(3, 2)), rng.normal(size=(5, 3))
    for make, at in (
        (lambda n: rescaled(n, center, unit), X[:, :2]),
        (lambda n: prefixed(n, matrix, center), X),
    ):
        assert isinstance(make(net), Perceptron)
        (one, pull), (two, wrapped) = make(net).pullback(at), make(other).pullback(at)
        np.testing.assert_allclose(one, two)
        np.testing.assert_allclose(pull(np.ones((5, 1))), wrapped(np.ones((5, 1))))


@pytest.mark.parametrize(
    ("columns", "outcome", "kind", "message"),
    [
        ({"age": FRAME["age"]}, Y, "binary", "the data lack 1 of them: `income`"),
        ({k: FRAME[k] for k in NUMBERS}, Y + 7, "numeric", "are not classes of the model"),
    ],
)
def test_errors_say_what_is_wrong(columns, outcome, kind, message):
    fitted = LogisticRegression().fit(frame()[NUMBERS], Y)
    with pytest.raises(DataError, match=message):
        viewed(fitted, columns, outcome, kind)


def test_text_for_a_model_of_numbers_is_refused():
    with pytest.raises(DataError, match="`job` holds text and the model takes a matrix of numbers"):
        numeric_space(FRAME, None, None)
    with pytest.raises(DataError, match="takes 3 inputs; 2 features were given"):
        numeric_space({k: FRAME[k] for k in NUMBERS}, None, 3)


def test_not_a_model_and_wrong_loss():
    numbers = {k: FRAME[k] for k in NUMBERS}
    with pytest.raises(UsageError, match="is not a model"):
        viewed(object(), numbers, Y, "binary")
    fitted = LogisticRegression().fit(frame()[NUMBERS], Y)
    with pytest.raises(UsageError, match="`loss` is `squared`; allowed for this outcome: `log`"):
        viewed(fitted, numbers, Y, "binary", loss="squared")


def test_unknown_columns_are_named_with_near_matches():
    space = InputSpace(inputs=(Input("age"), Input("job", "clerk")), encode=lambda c: np.zeros((1, 2)))
    assert space.columns_of(["job"]).tolist() == [False, True]
    with pytest.raises(DataError, match="Did you mean `age`"):
        space.columns_of(["agee"])


def test_class_names_are_stated():
    fitted = LogisticRegression().fit(frame()[NUMBERS], np.where(Y == 1, "yes", "no"))
    view = viewed(fitted, {k: FRAME[k] for k in NUMBERS}, Y, "binary")
    assert view.notes == ("Class `yes` of the model `LogisticRegression` is taken to be decision 1.",)


def exported(model, columns):
    """Return a real session of a model exported by skl2onnx; one input per column where names are given."""
    types = [(n, FloatTensorType([None, 1])) for n in columns] or [("X", FloatTensorType([None, len(NUMBERS)]))]
    onnx = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset=17)
    return onnxruntime.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])


def test_onnx_sessions_are_black_boxes():
    numbers = {k: FRAME[k] for k in NUMBERS}
    X = np.column_stack(list(numbers.values())).astype(np.float32)
    forest = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, Y)
    view = viewed(exported(forest, ()), numbers, Y, "binary")
    assert view.network is None
    np.testing.assert_allclose(view.score(view.space.encode(numbers)), forest.predict_proba(X), atol=1e-5)


def test_onnx_inputs_are_taken_by_name_not_by_place():
    numbers = {k: FRAME[k] for k in NUMBERS}
    X = np.column_stack(list(numbers.values())).astype(np.float32)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    view = viewed(exported(model, NUMBERS), dict(reversed(numbers.items())), Y, "binary")
    assert [i.column for i in view.space.inputs] == list(NUMBERS)
    np.testing.assert_allclose(view.score(view.space.encode(numbers)), model.predict_proba(X), atol=1e-5)
