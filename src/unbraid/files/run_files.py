"""What the files of a run are called."""

CONFIG, STATUS, SCORES = "config.json", "status.json", "scores.json"
WEIGHTS, CODES, CURVES = "weights.safetensors", "codes.safetensors", "curves.parquet"
CHECKPOINT = "checkpoint.safetensors"
SNAPSHOTS, HELD_OUT = "snapshots.parquet", "held_out.parquet"
LASTING = (WEIGHTS, CODES, CURVES, SNAPSHOTS, HELD_OUT)  # written once, and guarded
BASELINE_CODES = "codes.npz"  # of a baseline without training
WORKING = ".part"  # ends the name of a folder whose run is not finished
