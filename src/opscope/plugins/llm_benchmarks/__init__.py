"""Of the plug-in llm_benchmarks."""
