"""Try what is new on what is known: a metric on the codes of many models."""

from unbraid.bench.metric import Benched as Benched
from unbraid.bench.metric import bench_metrics as bench_metrics

__all__ = ["Benched", "bench_metrics"]
