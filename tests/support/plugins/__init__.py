"""Files in the format of other tools, and environments and packages as an installer leaves them."""
