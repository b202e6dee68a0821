from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pyspark_sql = importlib.import_module("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        # Starting the Java gateway leaves a subprocess and sockets that live as long as the session.
        warnings.simplefilter("ignore", ResourceWarning)
        session = (
            pyspark_sql.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
        yield session
        session.stop()
