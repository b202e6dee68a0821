"""Engines that hold rows and add them up where they are: DuckDB and Spark."""
