"""The data sets Evenhand knows: where they come from, under which licence, and how to check a copy.

Adult travels with the package. The others are known by name and checksum: their licences do not all allow
redistribution, so a copy is looked for in a few folders and checked before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import DataError, near_matches

ENVIRONMENT = "EVENHAND_DATA"

_UCI = "CC BY 4.0 (UCI)"
_MEPS = "US government data, MEPS data use agreement"
_CTFDIST = "BSD 3-Clause, Berk Ustun 2018"
_NONE = "none stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One data set: what it is and how a copy of it is recognised and read.

    Parameters
    ----------
    name : str
        What `load` and `table` call it.
    file : str
        ``folder/file`` below a data folder; the file may also lie in the data folder itself, and may be
        unpacked (without ``.gz``).
    rows : int
        Rows of the file.
    licence, origin : str
        Who allows what, and where the data come from.
    sha256 : tuple of str
        Of the unpacked content; any of them will do.
    delimiter : str
        Between values; ``"space"`` for any run of blanks.
    header : bool
        Whether a line of column names comes first.
    skip : int
        Lines before that.
    missing : str
        How the file writes a missing value.
    columns : tuple of str
        Names for a file without a header.
    """

    name: str
    file: str
    rows: int
    licence: str
    origin: str
    sha256: tuple[str, ...]
    delimiter: str = ","
    header: bool = True
    skip: int = 0
    missing: str = ""
    columns: tuple[str, ...] = field(default=(), repr=False)


class DatasetRow(NamedTuple):
    """One line of `known`.

    Parameters
    ----------
    name : str
        The data set.
    where : str
        ``"on board"``, ``"found at <path>"`` or ``"not found"``.
    licence : str
        Who allows what.
    rows : int
        Rows of the file.
    source : str
        Where the data come from.
    """

    name: str
    where: str
    licence: str
    rows: int
    source: str


_GERMAN = (
    "checking duration history purpose amount savings employment instalment_rate status_sex debtors "
    "residence property age other_plans housing credits job dependants telephone foreign class"
)
_HEART = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num"
_DRUG = (
    "id age gender education country ethnicity nscore escore oscore ascore cscore impulsive ss alcohol "
    "amphet amyl benzos caff cannabis choc coke crack ecstasy heroin ketamine legalh lsd meth mushrooms "
    "nicotine semer vsa"
)


def _heart(place: str, rows: int, sha256: str) -> Source:
    return Source(
        name=f"heart-{place}",
        file=f"heart/processed.{place}.data",
        rows=rows,
        licence=_UCI,
        origin="UCI Heart Disease, doi 10.24432/C52P4X",
        sha256=(sha256,),
        header=False,
        missing="?",
        columns=tuple(_HEART.split()),
    )


SOURCES: tuple[Source, ...] = (
    Source(
        name="adult",
        file="adult.parquet",
        rows=48842,
        licence="CC BY 4.0",
        origin="UCI Adult, Becker and Kohavi 1996, doi 10.24432/C5XW20",
        sha256=("ad878a6a057e912f73520d9057d321ef25564470200df569385fb8a9122984f0",),
    ),
    Source(
        name="compas",
        file="compas/compas-scores-two-years.csv.gz",
        rows=7214,
        licence=_NONE,
        origin="github.com/propublica/compas-analysis",
        sha256=(
            "a5e5c34bfd2d1f065bb12a44c0323421baf74b98b97d585915a0c2e1513ecaba",  # without personal names
            "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",  # as published
        ),
    ),
    Source(
        name="compas-violent",
        file="compas/compas-scores-two-years-violent.csv.gz",
        rows=4743,
        licence=_NONE,
        origin="github.com/propublica/compas-analysis",
        sha256=(
            "b8abcc0124548c8d16ae8dd48fc03a6153a1a18c895c378ac0517e367ecd84fe",
            "918e218ba181d4db8a7266977d23ca7a5ecf1bc7d5defd7b2f27bf3cbd9763e3",
        ),
    ),
    Source(
        name="german",
        file="german/german.data",
        rows=1000,
        licence=_UCI,
        origin="UCI Statlog (German Credit), doi 10.24432/C5NC77",
        sha256=("b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",),
        delimiter=" ",
        header=False,
        columns=tuple(_GERMAN.split()),
    ),
    Source(
        name="german-numeric",
        file="german/german.data-numeric.gz",
        rows=1000,
        licence=_UCI,
        origin="UCI Statlog (German Credit), doi 10.24432/C5NC77",
        sha256=("2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",),
        delimiter="space",
        header=False,
        columns=(*(f"x{i:02d}" for i in range(1, 25)), "class"),
    ),
    Source(
        name="bank",
        file="bank/bank-full.csv.gz",
        rows=45211,
        licence=_UCI,
        origin="UCI Bank Marketing, doi 10.24432/C5K306",
        sha256=("d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",),
        delimiter=";",
    ),
    Source(
        name="bank-additional",
        file="bank/bank-additional-full.csv.gz",
        rows=41188,
        licence=_UCI,
        origin="UCI Bank Marketing, doi 10.24432/C5K306",
        sha256=("74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",),
        delimiter=";",
    ),
    Source(
        name="default",
        file="default/default_of_credit_card_clients.csv.gz",
        rows=30000,
        licence=_UCI,
        origin="UCI Default of Credit Card Clients, doi 10.24432/C55S3H",
        sha256=("f987aec2784ea6439c2bc1868f246b45e5e6e410165dce25dc132a302924caa1",),
        skip=1,
    ),
    _heart("cleveland", 303, "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
    _heart("hungarian", 294, "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
    _heart("switzerland", 123, "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
    _heart("va", 200, "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
    Source(
        name="meps21",
        file="meps/meps21_fy2016_encoded.csv.gz",
        rows=15675,
        licence=_MEPS,
        origin="AHRQ MEPS HC-192, panel 21, recoded (github.com/MEMO-TEST/Cobweb)",
        sha256=("2421cfc3c6250fbae430408079127813ebb8e42eefb42ea662924ceadd3d6e8e",),
    ),
    Source(
        name="meps21-counts",
        file="meps/meps21_fy2016_cifrank.csv.gz",
        rows=15675,
        licence=_MEPS,
        origin="AHRQ MEPS HC-192, panel 21 (github.com/DataResponsibly/CIFRank)",
        sha256=("a96d8a616bf89de9bc5f5ea148a3c10545f09b31722bca4e267c63b0206f8951",),
    ),
    Source(
        name="meps15",
        file="meps/meps15_h181_processed_xfair.csv.gz",
        rows=4870,
        licence=_MEPS,
        origin="AHRQ MEPS HC-181, cleaned (github.com/anonymous12138/biasmitigation)",
        sha256=("4d44c4fee2249a141fc4114c7e900357e171f927cb83259e6276855003446316",),
    ),
    Source(
        name="student-mat",
        file="student/student-mat.csv",
        rows=395,
        licence=_UCI,
        origin="UCI Student Performance, doi 10.24432/C5TG7T",
        sha256=("e47f9ee225e1ee6e69b7564e6dac7123e80b8486677fe111f351964cef5dec80",),
        delimiter=";",
    ),
    Source(
        name="student-por",
        file="student/student-por.csv",
        rows=649,
        licence=_UCI,
        origin="UCI Student Performance, doi 10.24432/C5TG7T",
        sha256=("a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",),
        delimiter=";",
    ),
    Source(
        name="arrhythmia",
        file="arrhythmia/arrhythmia.data.gz",
        rows=452,
        licence=_UCI,
        origin="UCI Arrhythmia, doi 10.24432/C5BS32",
        sha256=("a7f0f4ca289a4c58b5ed85a9adb793189acd38425828ce3dfbb70adb45f30169",),
        header=False,
        missing="?",
        columns=("age", "sex", "height", "weight", *(f"x{i:03d}" for i in range(5, 280)), "class"),
    ),
    Source(
        name="drug",
        file="drug/drug_consumption.data.gz",
        rows=1885,
        licence=_UCI,
        origin="UCI Drug Consumption (quantified), doi 10.24432/C5TC7S",
        sha256=("37333e8db8a5529906b3729e5131d41313b5fa3f50dc3afeb4add892108be213",),
        header=False,
        columns=tuple(_DRUG.split()),
    ),
    Source(
        name="adult-proxy",
        file="ctfdist/adult_proxy_data.csv.gz",
        rows=32561,
        licence=_CTFDIST,
        origin="github.com/ustunb/ctfdist",
        sha256=("a535ac8e30fc58cefe2928a3a66e3fe192af21108bd6026e5f5e13c8ac152a5a",),
    ),
    Source(
        name="compas-proxy",
        file="ctfdist/compas_proxy_data.csv.gz",
        rows=6172,
        licence=_CTFDIST,
        origin="github.com/ustunb/ctfdist",
        sha256=("bbb8e14bf6f7261ddbfda64f0c3a8985c015e75a71617ccdf98c227f45844f82",),
    ),
)


def source(name: str) -> Source:
    """Return what is known about one data set.

    Parameters
    ----------
    name : str
        Such as ``"compas"``.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        When the name is not known; near matches are offered.

    Examples
    --------
    >>> source("compas").rows
    7214
    """
    for entry in SOURCES:
        if entry.name == name:
            return entry
    raise DataError(f"No data set is called `{name}`.{near_matches(name, (s.name for s in SOURCES))}")


def folders() -> tuple[Path, ...]:
    """Return the folders in which data sets are looked for, first choice first.

    Returns
    -------
    tuple of Path
        ``$EVENHAND_DATA``, then ``shared/data`` and ``../shared/data`` from the working directory, then
        ``~/.evenhand/data``.

    Examples
    --------
    >>> folders()[-1].name
    'data'
    """
    given = os.environ.get(ENVIRONMENT, "")
    here = Path.cwd()
    first = (Path(given).expanduser(),) if given else ()
    try:
        home: tuple[Path, ...] = (Path.home() / ".evenhand" / "data",)
    except RuntimeError:  # no home folder, as in some containers
        home = ()
    return (*first, here / "shared" / "data", here.parent / "shared" / "data", *home)


def find(entry: Source) -> Path | None:
    """Return the path of a data set's file, or None when no folder holds it.

    Parameters
    ----------
    entry : Source
        From `source`.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> find(source("adult")).name
    'adult.parquet'
    """
    if entry.name == "adult":
        return Path(__file__).with_name(entry.file)
    for folder in folders():
        for candidate in _candidates(folder, entry):
            if candidate.is_file():
                return candidate
    return None


def _candidates(folder: Path, entry: Source) -> Iterator[Path]:
    for path in (folder / entry.file, folder / Path(entry.file).name):
        yield path
        if path.suffix == ".gz":
            yield path.with_suffix("")


def known() -> list[DatasetRow]:
    """List the data sets Evenhand knows, and where each was found.

    Returns
    -------
    list of DatasetRow
        Name, where, licence, rows and source.

    Examples
    --------
    >>> known()[0][:4]
    ('adult', 'on board', 'CC BY 4.0', 48842)
    """
    rows = []
    for entry in SOURCES:
        path = find(entry)
        where = "on board" if entry.name == "adult" else "not found" if path is None else f"found at {path}"
        rows.append(DatasetRow(entry.name, where, entry.licence, entry.rows, entry.origin))
    return rows
