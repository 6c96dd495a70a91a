"""Drawing: meshes, rasters and the room."""
