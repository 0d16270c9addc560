"""Program → a run of many inferences: host stages around the device, sampling of profiled inferences, real outputs."""
