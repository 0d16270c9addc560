"""Many profiles: a store of rows in Parquet, questions to it in SQL, and sweeps that fill it."""
