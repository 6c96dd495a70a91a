"""From a folder of unlabelled images to a model chosen without labels: `unbraid.fit`."""
