from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from evenhand import datasets
from evenhand.datasets import files, registry
from evenhand.datasets.convert_adult import convert_adult
from evenhand.errors import DataError

SMALL = b"a,b\n1,x\n2,\n"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without any data folder."""
    monkeypatch.setenv("EVENHAND_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    here = tmp_path / "deep" / "down"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    return tmp_path


@pytest.fixture
def small(nowhere, monkeypatch):
    """One known data set of two rows."""
    entry = registry.Source(
        name="small",
        file="folder/small.csv.gz",
        rows=2,
        licence="none",
        origin="a test",
        sha256=(hashlib.sha256(SMALL).hexdigest(),),
    )
    known = (*registry.sources(), entry)
    monkeypatch.setattr(registry, "sources", lambda: known)
    return nowhere


def test_names_are_unique_and_every_checksum_is_one():
    names = [s.name for s in registry.sources()]
    assert len(names) == len(set(names)) == 21
    checksums = [c for s in registry.sources() for c in s.sha256]
    assert len(checksums) == len(set(checksums))
    assert all(len(c) == 64 and int(c, 16) for c in checksums)


def test_known_says_what_is_on_board_and_what_is_not_found(nowhere):
    rows = {row.name: row for row in datasets.known()}
    assert rows["adult"].where == "on board"
    assert rows["compas"].where == "not found"
    assert rows["compas"].rows == 7214
    assert rows["compas"].licence == "none stated"
    assert "propublica" in rows["compas"].source


@pytest.mark.parametrize(
    "place",
    [
        "given/folder/small.csv.gz",
        "given/small.csv",
        "deep/down/shared/data/small.csv.gz",
        "deep/shared/data/folder/small.csv",
        "home/.evenhand/data/small.csv.gz",
    ],
)
def test_a_copy_is_found_in_each_folder_packed_or_not(small, monkeypatch, place):
    monkeypatch.setenv("EVENHAND_DATA", str(small / "given"))
    path = small / place
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(SMALL) if path.suffix == ".gz" else SMALL)
    found = {row.name: row.where for row in datasets.known()}["small"]
    assert found.startswith("found at ")
    assert Path(found.removeprefix("found at ")).samefile(path)
    columns = datasets.table("small")
    assert columns["a"].tolist() == [1, 2]
    assert columns["b"].tolist() == ["x", None]


def test_the_named_folder_comes_first(small, monkeypatch):
    monkeypatch.setenv("EVENHAND_DATA", str(small / "given"))
    for folder in ("given", "home/.evenhand/data"):
        (small / folder).mkdir(parents=True)
        (small / folder / "small.csv").write_bytes(SMALL)
    assert registry.find(registry.source("small")) == small / "given" / "small.csv"


def test_another_file_of_that_name_is_refused(small, monkeypatch):
    monkeypatch.setenv("EVENHAND_DATA", str(small))
    (small / "small.csv").write_bytes(SMALL + b"3,y\n")
    with pytest.raises(DataError, match=r"is not the file known as `small`.*SHA-256"):
        datasets.table("small")


def test_a_broken_gzip_file_is_refused(small, monkeypatch):
    monkeypatch.setenv("EVENHAND_DATA", str(small))
    (small / "small.csv.gz").write_bytes(gzip.compress(SMALL)[:-9])
    with pytest.raises(DataError, match="not a whole gzip file"):
        datasets.table("small")


def test_a_missing_copy_says_where_to_put_it(nowhere):
    for call in (lambda: datasets.table("compas"), lambda: datasets.load("compas")):
        with pytest.raises(
            DataError, match=r"compas-scores-two-years.csv.gz.*evenhand datasets add compas FILE.*EVENHAND_DATA"
        ):
            call()


def test_an_unknown_name_offers_near_ones():
    with pytest.raises(DataError, match="Did you mean `compas`"):
        datasets.table("compass")
    with pytest.raises(DataError, match="No data set is called"):
        datasets.load("zzz")


def test_a_set_without_decisions_cannot_be_loaded():
    with pytest.raises(DataError, match=r"no decisions.*datasets.table\('german'\)"):
        datasets.load("german")


def test_missing_values_of_each_type_are_written_as_missing():
    mask = [False, True]
    assert np.isnan(files._unmasked(np.ma.array([1, 2], mask=mask))[1])
    assert np.isnan(files._unmasked(np.ma.array([1.5, 2], mask=mask))[1])
    assert files._unmasked(np.ma.array(np.array(["a", "b"], dtype=object), mask=mask))[1] is None
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[us]")
    assert np.isnat(files._unmasked(np.ma.array(days, mask=mask))[1])
    assert files._unmasked(np.array([250, 250], dtype=np.uint8)).sum() == 500


def test_the_converter_refuses_another_file(tmp_path):
    (tmp_path / "a").write_text("1, 2\n")
    with pytest.raises(DataError, match="the published file has"):
        convert_adult(tmp_path / "a", tmp_path / "a", tmp_path / "out")
    assert not (tmp_path / "out").exists()
