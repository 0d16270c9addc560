"""ESP-DL on ESP32 chips: what its profiler prints."""
