"""How `make docs` builds the site: every warning is an error, and nothing in a page is fetched from elsewhere."""

import re
from pathlib import Path

from sphinx.application import Sphinx

REPOSITORY = "https://github.com/opscope/opscope/blob/main"

project = "opscope"
copyright = "the opscope authors"  # noqa: A001 - Sphinx reads this name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["images"]
default_role = "literal"  # as Markdown has it
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of signatures are told, and are no pages of their own
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True

myst_heading_anchors = 4  # links to headings, as code hosts write them
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "opscope"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def links_out(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files of the repository that are not pages lead to the repository."""
    docs = Path(app.srcdir)

    def absolute(link: re.Match[str]) -> str:
        place = (docs / name).parent.joinpath(link[1]).resolve()
        return link[0] if place.is_relative_to(docs) else f"]({REPOSITORY}/{place.relative_to(docs.parent).as_posix()}"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]+)", absolute, source[0])


def public_names(app: Sphinx, name: str, source: list[str]) -> None:
    """The page of the interface: a directive for every public name, functions first."""
    if name != "api":
        return
    import opscope

    found = [(each, getattr(opscope, each)) for each in opscope.__all__ if not each.startswith("_")]
    for title, kind, wanted in (("Functions", "function", False), ("Classes", "class", True)):
        names = [each for each, value in found if isinstance(value, type) is wanted]
        members = "   :members:\n   :exclude-members: __init__, __new__\n" if wanted else ""
        body = "\n".join(f".. auto{kind}:: opscope.{each}\n{members}" for each in names)
        source[0] += f"\n## {title}\n\n```{{eval-rst}}\n{body}```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", links_out)
    app.connect("source-read", public_names)
