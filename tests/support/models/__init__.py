"""Model files that readers, backends and verbs are tried on."""
