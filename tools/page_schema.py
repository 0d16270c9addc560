"""Write the contract between Run and page as JSON Schema: `python tools/page_schema.py > web/contract.schema.json`."""

from __future__ import annotations

import json
import sys

from opscope.views.page.contract import json_schema

if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")
