"""Program → a run of many inferences: host stages around the device, which inferences are profiled, real outputs."""
