"""From a folder of unlabelled images to one model that was chosen without labels: `unbraid.fit`."""
