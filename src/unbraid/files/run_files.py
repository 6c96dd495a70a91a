"""What the files of a run are called."""

CONFIG, STATUS, SCORES = "config.json", "status.json", "scores.json"
WEIGHTS, CODES, CURVES = "weights.safetensors", "codes.safetensors", "curves.parquet"
CHECKPOINT = "checkpoint.safetensors"
SNAPSHOTS, HELD_OUT = "snapshots.parquet", "held_out.parquet"
LASTING = (WEIGHTS, CODES, CURVES, SNAPSHOTS, HELD_OUT)  # written once, and guarded
ADDED_CODES = "codes.npz"  # of a representation that was added to a study
WORKING = ".part"  # ends the name of a folder whose run is not finished
