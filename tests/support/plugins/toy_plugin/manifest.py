"""What the toy adds. Data alone: it imports nothing but the classes of manifests."""

from opscope.core.manifest import BackendEntry, Entry, Face, Format, Manifest, Option, Signature, Verb
from opscope.core.provenance import Provenance

MANIFEST = Manifest(
    name="toy",
    title="A toy vendor",
    package=__package__,
    targets="targets",
    formats=(
        Format(
            "toy-file",
            "a toy's profile (*.toy)",
            (Signature(rb"\s*\{", contains=(b'"toy"',)),),
            ".importer:ToyFile",
        ),
    ),
    backends=(
        BackendEntry(
            "toy",
            "A toy runtime",
            ".backend:ToyBackend",
            options=(Option("speed", "how fast it goes (default 1)", default=1, is_number=True, metavar="N"),),
        ),
    ),
    entries=(Entry("toy-board", "A toy board", "toy", (Provenance.MEASURED,)),),
    verbs=(Verb("toy", "Say hello", ".commands"),),
    faces=(Face("Toy", ".backend:ToyBackend"),),
)
