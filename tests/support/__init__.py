"""What tests share: graphs, programs and runs by hand, files of other tools, and slow, obvious answers."""
