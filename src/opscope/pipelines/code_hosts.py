"""Code hosts: what their CI says about the change that is judged, and how a comment gets there.

A comment is written once and then replaced: it is found again by its first line, which no reader sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..core.errors import ProfilerError, printable

TOKEN = "OPSCOPE_TOKEN"  # noqa: S105 - the name of a variable
_LONGEST_S = 30.0
_PAGE, _MOST_PAGES = 100, 10  # comments that are looked through
_MOST_BYTES = 16 << 20  # of an answer


class CommentError(ProfilerError):
    """A comment that could not be written."""


class Host(Protocol):
    """Where a change is reviewed."""

    @property
    def is_default_branch(self) -> bool:
        """Whether what runs is the branch that changes are made against."""

    @property
    def can_comment(self) -> bool:
        """Whether there is a change to comment on, and a token to do it with."""

    def comment(self, marker: str, body: str) -> None:
        """Write a comment that starts with the marker, or replace the one that does."""


@dataclass(frozen=True, slots=True)
class _Job:
    """What the jobs of every host know."""

    api: str
    project: str
    number: int | None  # of the pull or merge request
    token: str
    is_default_branch: bool

    @property
    def can_comment(self) -> bool:
        return self.number is not None and bool(self.token)


class GitHub(_Job):
    """A job of GitHub Actions."""

    def comment(self, marker: str, body: str) -> None:
        place = f"{self.api}/repos/{quote(self.project)}/issues"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/vnd.github+json"}
        comments, one = f"{place}/{self.number}/comments", f"{place}/comments/{{number}}"
        _replace_or_write(marker, body, comments, headers=headers, change="PATCH", of=one)


class GitLab(_Job):
    """A job of GitLab."""

    def comment(self, marker: str, body: str) -> None:
        notes = f"{self.api}/projects/{quote(self.project, safe='')}/merge_requests/{self.number}/notes"
        headers = {"PRIVATE-TOKEN": self.token}
        _replace_or_write(marker, body, notes, headers=headers, change="PUT", of=f"{notes}/{{number}}")


def host_of(variables: Mapping[str, str]) -> Host | None:
    """The code host whose CI set these variables; None: of none that is known here."""
    token = variables.get(TOKEN, "")
    if variables.get("GITHUB_ACTIONS") == "true":
        event = _event(variables.get("GITHUB_EVENT_PATH"))
        number = _inner(event, "pull_request").get("number")
        branch = _inner(event, "repository").get("default_branch")
        is_change = variables.get("GITHUB_EVENT_NAME", "").startswith("pull_request")
        return GitHub(
            variables.get("GITHUB_API_URL", "https://api.github.com"),
            variables.get("GITHUB_REPOSITORY", ""),
            number if isinstance(number, int) else None,
            token,
            not is_change and branch is not None and variables.get("GITHUB_REF_NAME") == branch,
        )
    if variables.get("GITLAB_CI") == "true":
        iid, branch = variables.get("CI_MERGE_REQUEST_IID", ""), variables.get("CI_COMMIT_BRANCH")
        return GitLab(
            variables.get("CI_API_V4_URL", ""),
            variables.get("CI_PROJECT_ID", ""),
            int(iid) if iid.isdecimal() else None,
            token,
            branch is not None and branch == variables.get("CI_DEFAULT_BRANCH"),
        )
    return None


def _event(path: str | None) -> Mapping[str, object]:
    try:
        found = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _inner(event: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = event.get(key)
    return found if isinstance(found, dict) else {}


def _replace_or_write(
    marker: str, body: str, comments: str, *, headers: Mapping[str, str], change: str, of: str
) -> None:
    """Somebody else's comment with our first line cannot be replaced: then ours is a new one."""
    for number in _with_marker(marker, comments, headers):
        try:
            _ask(change, of.format(number=number), headers, {"body": body})
        except CommentError:
            continue
        return
    _ask("POST", comments, headers, {"body": body})


def _with_marker(marker: str, comments: str, headers: Mapping[str, str]) -> Iterator[int]:
    for page in range(1, _MOST_PAGES + 1):
        found = _ask("GET", f"{comments}?per_page={_PAGE}&page={page}", headers)
        entries = found if isinstance(found, list) else []
        for entry in entries:
            if isinstance(entry, dict) and str(entry.get("body", "")).startswith(marker):
                yield int(entry["id"])
        if len(entries) < _PAGE:
            return


class _StayHere(HTTPRedirectHandler):
    """A token is for the host that it was made for: no redirection is followed."""

    def redirect_request(self, *_: object) -> None:
        return None


def _ask(method: str, address: str, headers: Mapping[str, str], fields: Mapping[str, str] | None = None) -> object:
    if not address.startswith(("https://", "http://")):
        raise CommentError(f"{printable(address, 200)}: is no address of an API; expected http:// or https://")
    data = None if fields is None else json.dumps(fields).encode()
    request = Request(  # noqa: S310 - http and https alone
        address, data, {**headers, "Content-Type": "application/json", "User-Agent": "opscope"}, method=method
    )
    try:
        with build_opener(_StayHere).open(request, timeout=_LONGEST_S) as answer:
            return json.loads(answer.read(_MOST_BYTES) or b"null")
    except HTTPError as error:
        raise CommentError(f"comment: {error.code} {error.reason}; expected a token that may write comments") from error
    except (URLError, OSError, ValueError) as error:
        raise CommentError(f"comment: {printable(str(error), 200)}; expected the API of the code host") from error
