"""Nouns → text, JSON, Markdown, HTML: one module each; they format and never compute."""
