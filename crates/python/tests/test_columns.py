"""Columns by the names of their rows: Series, mappings and tables, and what is no column at all."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apportion as ap

T = [[4.0, 1.0], [4.0, 2.0], [3.0, 3.0]]
WORKERS = {"v100": 1, "k80": 1}
NAMES = ["a", "b", "c"]
TYPES: dict[str, Any] = {"job_type": ["ResNet-18 (batch size 16)"] * 2, "total_steps": [10, 20], "arrival": [0, 1]}


def test_a_series_is_taken_by_its_index() -> None:
    pandas = pytest.importorskip("pandas")

    def series(values: list[Any], index: Any) -> Any:
        return pandas.Series(values, index=index)

    turned = ["c", "b", "a"]
    p = ap.problem(T, WORKERS, names=NAMES, weight=series([1, 2, 3], turned), owner=series(["x", "y", "z"], turned), extra={"e": series([1, 2, 3], turned)})
    assert p.weight.tolist() == [3, 2, 1] and p.owner == ["z", "y", "x"] and p.extra["e"].tolist() == [3, 2, 1]
    by_position = ap.problem(T, WORKERS, names=NAMES, owner=series(["x", "y", "z"], [0, 1, 2]))
    assert by_position.owner == ["x", "y", "z"]
    assert ap.problem(T, WORKERS, weight=series([1, 2, 3], [2, 1, 0])).weight.tolist() == [3, 2, 1]
    for index in ([(1, 2), (1, 3), (2, 3)], pandas.date_range("2020", periods=3), [1.0, 2.0, 3.0]):
        index = pandas.MultiIndex.from_tuples(index) if isinstance(index, list) and isinstance(index[0], tuple) else pandas.Index(index)
        frame = pandas.DataFrame(T, columns=list(WORKERS), index=index)
        assert ap.problem(frame, WORKERS, weight=series([1, 2, 3], index[::-1])).weight.tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (["c", "b", "x"], "has 'x', which is no job"),
        (["c", "b", "a", "x"], "has 'x', which is no job"),
        (["c", "b"], "nothing for job 'a'"),
        (["c", "b", "b"], "'b' more than once"),
        ([1, 2, 3], "has 1, which is no job"),
    ],
)
@pytest.mark.parametrize("field", ["weight", "owner"])
def test_an_index_that_is_not_the_jobs_is_refused(field: str, index: list[Any], said: str) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ap.InputError, match=said) as raised:
        ap.problem(T, WORKERS, names=NAMES, **{field: pandas.Series(list(range(1, len(index) + 1)), index=index)})
    # Values by position are a remedy where there is one for each job.
    remedy = ".to_numpy() gives one" if len(index) == 3 else "expected one for each job: a, b, c"
    assert field in str(raised.value) and remedy in str(raised.value.help)


def test_what_has_no_order_is_refused(tmp_path: Any) -> None:
    for fields in ({"names": {"a", "b", "c"}}, {"names": {"a": 1, "b": 2, "c": 3}}, {"owner": {"x", "y", "z"}}, {"weight": {1, 2, 3}}, {"names": "abc"}):
        with pytest.raises(ap.InputError, match=next(iter(fields))):
            ap.problem(T, WORKERS, **fields)  # type: ignore[arg-type]
    assert ap.problem(T, WORKERS, names=dict.fromkeys(NAMES).keys()).names == NAMES  # type: ignore[arg-type]
    run: dict[str, Any] = {"cluster": WORKERS, "rate": 0.2, "jobs": 3}
    wrong: list[dict[str, Any]] = [{"seeds": {0, 1}}, {"seeds": {0: 1}}, {"axes": {"round_length": {360, 720}}}, {"policies": {"fifo", "srtf"}}]
    for fields in wrong:
        with pytest.raises(ap.InputError, match="no order|list of policies"):
            ap.sweep(**{"policies": ["fifo"], "seeds": [0], "out": tmp_path / "s", **run, **fields})
    with pytest.raises(ap.InputError, match="a set, which has no order"):
        ap.simulate("fifo", measure={0, 3}, cluster=WORKERS, rate=0.2)
    with pytest.raises(ap.InputError, match="total_steps is a set"):
        ap.traces.table(**TYPES | {"total_steps": {300, 2}})


def test_a_traces_columns_are_of_the_same_rows() -> None:
    assert ap.traces.table(**TYPES | {"total_steps": {1: 200, 0: 100}})["total_steps"].tolist() == [100, 200]
    named = ap.traces.table(**TYPES | {"id": ["x", "y"], "total_steps": {"y": 200, "x": 100}})
    assert named["total_steps"].tolist() == [100, 200]
    with pytest.raises(ap.InputError, match="total_steps: its keys have 7.*\n.*a list is taken by position"):
        ap.traces.table(**TYPES | {"total_steps": {0: 100, 7: 200}})
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TYPES | {"arrival": [60, 0]}).sort_values("arrival")
    assert ap.traces.table(**{name: frame[name] for name in frame})["total_steps"].tolist() == [20, 10]
    with pytest.raises(ap.InputError, match=r"arrival: its index is \[1, 0\]"):
        ap.traces.table(**TYPES | {"arrival": frame["arrival"]})
    with pytest.raises(ap.InputError, match="arrival has 1 values for 2 jobs"):
        ap.traces.table(**TYPES | {"arrival": frame["arrival"][:1]})
    with pytest.raises(ap.InputError, match="is a table, expected one column"):
        ap.traces.table(**TYPES | {"arrival": frame})


MASKED = np.ma.masked_array(np.full((2, 2), 0.25), mask=[[True, False], [False, False]])


@pytest.mark.parametrize(
    "wrong",
    [
        MASKED,
        list(MASKED),
        np.full((2, 2), 0.25 + 3j),
        np.full((2, 2), 1, dtype="m8[s]"),
        np.full((2, 2), "2020-01-01", dtype="M8[D]"),
        [["0.25", "0"]] * 2,
        np.array([["0.25", 0.0]] * 2, dtype=object),
    ],
)
def test_what_is_no_number_is_refused_by_all_alike(wrong: Any) -> None:
    p = ap.problem(T[:2], WORKERS)
    for ask in (lambda: ap.problem(wrong, WORKERS), lambda: ap.fit(p, wrong), lambda: ap.allocate(p, policy=lambda _: wrong)):
        with pytest.raises(ap.InputError, match="masked values|expected numbers"):
            ask()


def test_answers_are_read_by_the_names_of_worker_types() -> None:
    p = ap.problem(T[:2], WORKERS, names=["a", "b"])
    expected = [[0.5, 0.1], [0.2, 0.3]]
    answers: list[Any] = [
        expected,
        {0: {"k80": 0.1, "v100": 0.5}, 1: {"k80": 0.3, "v100": 0.2}},
        {"b": {"k80": 0.3, "v100": 0.2}, "a": [0.5, 0.1]},
    ]
    wrong: list[tuple[Any, str]] = [
        ({0: [0.1, 0.1], "a": [0.2, 0.2]}, "shares to 'a' twice"),
        ({(0, 1): [0.1, 0.1], ("b", "a"): [0.2, 0.2]}, "twice"),
        ({0: {"x": 1.0}}, "worker type 'x'"),
        ({True: [0.5, 0.1]}, "gave shares to True"),
        ({0: {0.5, 0.1}}, "to one combination"),
        ({0: [0.5 + 1j, 0]}, "to one combination"),
    ]
    try:
        import pandas

        frame = pandas.DataFrame(expected, columns=["v100", "k80"], index=["a", "b"])
        answers += [frame, frame[["k80", "v100"]], frame.loc[["b", "a"]], pandas.DataFrame(expected), {0: frame.loc["a"][::-1], 1: frame.loc["b"]}]
        wrong += [(frame.rename(columns={"k80": "x"}), "'x', which is no worker type"), (frame.rename(index={"a": "x"}), "'x', which is no job")]
    except ImportError:
        pass
    for answer in answers:
        assert ap.allocate(p, policy=lambda _, answer=answer: answer).shares.tolist() == expected
        assert ap.fit(p, answer).tolist() == expected
    for answer, said in wrong:
        for ask in (lambda: ap.fit(p, answer), lambda: ap.allocate(p, policy=lambda _: answer)):
            with pytest.raises(ap.InputError, match=said):
                ask()
    with pytest.raises(ap.InputError, match="of jobs alone"):
        ap.fit(p, {(0, 1): [0.1, 0.1]})


@pytest.mark.parametrize("tolerance", [np.nan, -1, "x", None, True])
def test_a_tolerance_is_a_number_of_at_least_0(tolerance: Any) -> None:
    p = ap.problem(T, WORKERS)
    with pytest.raises(ap.InputError, match="tolerance is"):
        ap.fit(p, np.full((3, 2), 9.0), tolerance=tolerance)
    with pytest.raises(ap.InputError, match="problem is 5"):
        ap.fit(5, [[0.0]])  # type: ignore[arg-type]


class Unspoken(np.ndarray):
    """An array that cannot be put into words, which takes longer than most decisions."""

    def __repr__(self) -> str:
        raise AssertionError("it was put into words")


def test_columns_are_put_into_words_for_messages_only() -> None:
    def unspoken(values: object) -> np.ndarray:
        return np.asarray(values).view(Unspoken)

    made = ap.problem(unspoken([[4.0, 1.0], [2.0, 2.0]]), {"fast": 1, "slow": 1}, weight=unspoken([1.0, 2.0]), scale_factor=unspoken([1, 1]))
    assert made.n_jobs == 2
    answer = unspoken([[0.5, 0.5], [0.5, 0.5]])
    assert ap.fit(made, answer).shape == (2, 2)
    assert ap.allocate(made, policy=lambda problem: {job: unspoken([0.5, 0.5]) for job in range(2)}).shares.shape == (2, 2)


def apart(array: Any) -> Any:
    """The same numbers one byte beside where a processor reads them."""
    array = np.ascontiguousarray(array)
    return np.frombuffer(b"\0" + array.tobytes(), dtype=array.dtype, offset=1).reshape(array.shape)


def test_arrays_may_lie_anywhere(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"abc" + np.array(T).tobytes())
    packed = np.zeros(3, dtype=[("flag", "i1"), ("row", "f8", 2)])
    packed["row"] = T
    whole = ap.allocate(T, WORKERS).shares.tolist()
    for rows in (apart(T), np.memmap(tmp_path / "t", np.float64, "r", 3, (3, 2)), packed["row"], np.array(T, dtype=">f8")):
        assert ap.allocate(rows, WORKERS).shares.tolist() == whole
        assert ap.fit(ap.problem(T, WORKERS), apart(rows * 0.05)).tolist() == (np.array(T) * 0.05).tolist()
    p = ap.problem(T, WORKERS, pairs={(0, 1): apart([[1.0, 2.0], [3.0, 4.0]])}, weight=apart([1.0, 2.0, 3.0]), extra={"mine": apart([1.0, 2.0, 3.0])})
    assert p.pairs()[1].tolist() == [[[1, 2], [3, 4]]] and p.weight.tolist() == [1, 2, 3]
    # (a pickle's arrays lie where its reader puts them)
    arguments = {"throughputs": apart(T), "pairs": [(0, 1, apart([[1.0, 2.0], [3.0, 4.0]]))]}
    columns = dict.fromkeys(("steps_remaining", "elapsed", "isolated_elapsed", "slo_remaining", "owner", "names"))
    columns |= {"scale_factor": apart([1, 1, 1]), "weight": apart([1.0, 2.0, 3.0])}
    made = ap.Problem(list(WORKERS), [1, 1], arguments["throughputs"], columns, pairs=arguments["pairs"])
    assert made.throughputs.tolist() == T and made.weight.tolist() == [1, 2, 3] and made.pairs()[1].tolist() == p.pairs()[1].tolist()
    session = ap.Session(WORKERS)
    session.add("a", apart([4.0, 1.0]))
    assert session.decide().share("a").tolist() == [1, 0]


def test_answers_may_lie_anywhere() -> None:
    half = np.full((3, 2), 0.25)
    assert ap.allocate(T, WORKERS, lambda _: apart(half)).shares.tolist() == half.tolist()
    assert ap.allocate(T, WORKERS, lambda _: {0: apart([0.5, 0.5])}).shares.tolist() == [[0.5, 0.5], [0, 0], [0, 0]]
    run = ap.simulate(lambda p: apart(np.zeros(p.throughputs.shape)), WORKERS, rate=0.2, jobs=3)
    assert run.status == "done"


def test_names_that_are_numbers_are_names_in_answers() -> None:
    p = ap.problem(T, WORKERS, names=[1, 7, 0])
    shares = ap.allocate(p, policy=lambda _: {1: {"v100": 0.5}, np.int64(0): {"k80": 0.25}}).shares
    assert shares.tolist() == [[0.5, 0], [0, 0], [0, 0.25]]
    assert ap.fit(p, {7: [0.5, 0]}).tolist() == [[0, 0], [0.5, 0], [0, 0]]
    with pytest.raises(ap.InputError, match="gave shares to 2, expected a job's name"):
        ap.allocate(p, policy=lambda _: {2: [0.5, 0]})
    for plain in (ap.problem(T, WORKERS), ap.problem(T, WORKERS, names=NAMES)):
        assert ap.allocate(plain, policy=lambda _: {2: [0.5, 0]}).shares.tolist() == [[0, 0], [0, 0], [0.5, 0]]
    seen = []

    def last(p: ap.Problem) -> Any:
        seen.append(p.names[-1])
        return {p.names[-1]: np.where(p.throughputs[-1] > 0, 1 / len(p.workers) / p.scale_factor[-1], 0)}

    run = ap.simulate(last, {"v100": 2, "p100": 2, "k80": 2}, rate=2, jobs=8)
    assert len(set(seen)) > 1 and set(seen) == set(run.allocations["job"].tolist())


def test_extra_columns_have_names_of_their_own() -> None:
    for name in ("weight", "throughput", "sum_over_jobs", "steps_remaining"):
        with pytest.raises(ap.InputError, match=f"extra: `{name}` is a word of policies already"):
            ap.problem(T, WORKERS, extra={name: 1.0})


def test_columns_of_an_answers_table_are_called_columns() -> None:
    pandas = pytest.importorskip("pandas")
    half = [0.1] * 3
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"v100": half}, "its columns have nothing for worker type 'k80'", "expected one for each worker type: v100, k80"),
        ({"v100": half, "k80": half, "x": half}, "its columns have 'x', which is no worker type", "expected one for each worker type: v100, k80"),
        ({"v100": half, "x": half}, "its columns have 'x', which is no worker type", ".to_numpy() gives one"),
    ]
    for columns, said, remedy in cases:
        frame = pandas.DataFrame(columns)
        with pytest.raises(ap.InputError, match=said) as raised:
            ap.allocate(T, WORKERS, lambda _: frame)
        assert remedy in str(raised.value.help)
    assert ap.allocate(T, WORKERS, lambda _: frame.to_numpy()).shares.tolist() == [[0.1, 0.1]] * 3, "as the last says"


def test_a_table_that_is_not_collected_is_refused() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(T, schema=list(WORKERS), orient="row")
    asked: list[tuple[Any, str]] = [
        (lambda: ap.allocate(table.lazy(), WORKERS), "throughputs: a LazyFrame, which has no values yet"),
        (lambda: ap.allocate(T, WORKERS, lambda _: table.lazy()), "a policy returned: a LazyFrame"),
        (lambda: ap.fit(ap.problem(T, WORKERS), table.lazy()), "shares: a LazyFrame"),
        (lambda: ap.problem(T, WORKERS, weight=table.lazy()), "weight is a table, expected one column"),
        (lambda: ap.traces.table(**TYPES | {"arrival": table.lazy()}), "arrival is a table, expected one column"),
        (lambda: ap.simulate("fifo", WORKERS, rate=1, jobs=2, throughputs=table.lazy()), "throughputs: a LazyFrame"),
        (lambda: ap.simulate("fifo", WORKERS, trace=table.lazy()), "trace is a table of another kind"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask, said in asked:
            with pytest.raises(ap.InputError, match=said) as raised:
                ask()
            assert ".collect()" in str(raised.value.help) or "trace" in said
    assert ap.allocate(table.lazy().collect(), WORKERS).shares.shape == (3, 2)
    assert ap.problem(T, WORKERS, weight=table.lazy().collect()["v100"]).weight.tolist() == [4, 4, 3]


def test_owners_and_names_are_one_for_each_job() -> None:
    assert ap.problem(T, WORKERS, owner=np.array("a")).owner == ["a", "a", "a"], "one value for all"
    assert ap.problem(T, WORKERS, owner=[np.array("a"), 1, None]).owner == ["a", "1", None]
    hidden = np.ma.masked_array(["a", "b", "c"], mask=[True, False, False])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"owner": np.array([["a"], ["b"], ["c"]])}, r"owner: an array of shape \(3, 1\), expected \(3,\)"),
        ({"owner": [["a"], "b", "c"]}, r"an owner is \['a'\], expected a name"),
        ({"owner": b"a"}, "an owner is b'a', expected a name"),
        ({"owner": hidden}, "owner: masked values"),
        ({"names": np.array("a")}, r"names: an array of shape \(\)"),
        ({"names": np.array([["a"], ["b"], ["c"]])}, r"names: an array of shape \(3, 1\)"),
        ({"names": [["a"], "b", "c"]}, r"a job's name is \['a'\], expected a name"),
        ({"names": hidden}, "names: masked values"),
    ]
    for fields, said in wrong:
        with pytest.raises(ap.InputError, match=said):
            ap.problem(T, WORKERS, **fields)
    for column in ("id", "job_type", "entity"):
        for value in ([["a"], ["b"]], [b"a", "b"]):
            with pytest.raises(ap.InputError, match=f"row 0: {column} is .*, expected a name"):
                ap.traces.table(**TYPES | {column: value})
    assert ap.traces.table(**TYPES | {"weight": np.array(2.0)})["weight"].tolist() == [2, 2]
