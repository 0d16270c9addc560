"""CI for real: `opscope ci`, the steps of the action and the job of the template, in a repository with a code host."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from opscope.cli import main
from opscope.pipelines.code_hosts import GitHub, GitLab, host_of
from support.cli.action_runner import Ran, clean, run_action
from support.cli.code_host import TOKEN, CodeHost, code_host

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOSTILE = "x'; touch owned; echo '$(touch owned)`touch owned`\"; touch owned; \""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, channels in (("good", "64"), ("wider", "128")):
        path = folder / f"{name}.tflite"
        words = ["--channels", channels, "--format", "tflite", "--precision", "int8"]
        assert main(["zoo", "kws-cnn", *words, "-o", str(path)]) == 0
    return folder


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with code_host() as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path, models: Path) -> Path:
    """A user's repository, on its main branch."""
    folder = tmp_path / "repository"
    (folder / "models").mkdir(parents=True)
    shutil.copy(models / "good.tflite", folder / "models" / "kws.tflite")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a model")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def checkout(repository: Path, place: Path, model: Path | None = None) -> Path:
    """A fresh copy, as every job has, on a branch that changes the model where one is given."""
    git(repository, "clone", "--quiet", str(repository), str(place))
    if model is not None:
        git(place, "switch", "--quiet", "--create", "change")
        shutil.copy(model, place / "models" / "kws.tflite")
    return place


def on_github(folder: Path, host: CodeHost, *, change: bool, token: str = TOKEN, **inputs: str) -> Ran:
    """The action on GitHub: for a pull request, or a push to main."""
    event = {"repository": {"default_branch": "main"}} | ({"pull_request": {"number": 7}} if change else {})
    place = folder.parent / f"{folder.name}.event.json"
    place.write_text(json.dumps(event))
    cache = folder.parent / "cache"
    cache.mkdir(exist_ok=True)
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": host.address,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_NAME": "pull_request" if change else "push",
        "GITHUB_EVENT_PATH": str(place),
        "GITHUB_REF_NAME": "7/merge" if change else "main",
        "GITHUB_STEP_SUMMARY": str(folder.parent / f"{folder.name}.summary.md"),
    }
    return run_action(
        ACTION,
        {"models": "models/kws.tflite", "target": "cortex-m4", "token": token, **inputs},
        folder=folder,
        cache=cache,
        github={"action_path": str(ROOT), "sha": git(folder, "rev-parse", "HEAD"), "token": ""},
        variables=variables,
        skip=("install",),  # our own package is here; tests/integration/setup/test_install.py installs it
    )


def test_a_change_is_compared_with_the_main_branch_and_the_cause_is_a_comment(
    repository: Path, models: Path, host: CodeHost, tmp_path: Path
) -> None:
    on_main = on_github(checkout(repository, tmp_path / "main"), host, change=False)
    assert on_main.code == 0, on_main.log
    assert "Keep the baselines" in on_main.steps
    assert not host.comments

    changed = on_github(checkout(repository, tmp_path / "change", models / "wider.tflite"), host, change=True)
    assert changed.code == 1, changed.log
    assert "Keep the baselines" not in changed.steps
    comment = host.comments[1]
    assert comment.startswith("<!-- opscope ci: opscope -->\n### opscope: ❌ regression\n")
    row = next(line for line in comment.splitlines() if line.startswith("| models/kws.tflite"))
    assert "❌" in row
    assert "MACs" in row.split("|")[6]
    assert "::error title=opscope%3A latency>2%25::latency +" in changed.log
    assert (tmp_path / "change.summary.md").read_text(encoding="utf-8") == comment
    assert changed.kept is not None
    assert (changed.kept / "models" / "kws.tflite.run" / "report.html").is_file()
    suite = ET.parse(changed.kept / "models" / "kws.tflite.xml").getroot()  # noqa: S314 – written a moment ago
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")

    mended = on_github(checkout(repository, tmp_path / "mended", models / "good.tflite"), host, change=True)
    assert mended.code == 0, mended.log
    assert list(host.comments) == [1]
    assert "✅ no regression" in host.comments[1]


def test_a_baseline_that_the_repository_keeps_is_held_to_and_not_cached(
    repository: Path, models: Path, host: CodeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    assert main(["ci", "models/kws.tflite", "--target", "cortex-m4", "--save", "always"]) == 0
    git(repository, "add", "perf")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "baselines")
    changed = on_github(
        checkout(repository, tmp_path / "change", models / "wider.tflite"),
        host,
        change=True,
        baselines="perf",
        token="",
    )
    assert changed.code == 1, changed.log
    assert not [step for step in changed.steps if "aselines" in step]
    assert not host.asked


def test_without_a_baseline_or_a_token_that_may_comment_the_files_are_left_and_nothing_fails(
    repository: Path, host: CodeHost, tmp_path: Path
) -> None:
    done = on_github(checkout(repository, tmp_path / "first"), host, change=True, token="of-a-fork")  # noqa: S106
    assert done.code == 0, done.log
    assert "no baseline yet" in (tmp_path / "first" / "performance" / "comment.md").read_text(encoding="utf-8")
    assert "note: comment: 403 Forbidden; expected a token that may write comments" in done.log
    assert not host.comments


def test_no_input_is_run_by_the_shell(repository: Path, host: CodeHost, tmp_path: Path) -> None:
    place = checkout(repository, tmp_path / "change")
    names = set(ACTION["inputs"]) - {"token", "python-version", "extras"}
    assert on_github(place, host, change=True, token="", **dict.fromkeys(names, HOSTILE)).code == 2
    assert not list(tmp_path.rglob("owned"))


def test_scripts_of_the_action_hold_no_expression_and_name_their_shell() -> None:
    scripts = [step for step in ACTION["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert not [step for step in scripts if "${{" in step["run"] or step["shell"] != "bash"]


def job(inputs: dict[str, str]) -> dict[str, object]:
    """The template's job, with inputs in the values, as GitLab interpolates them."""
    spec, jobs = yaml.safe_load_all((ROOT / "templates" / "opscope.yml").read_text(encoding="utf-8"))
    known = {name: (entry or {}).get("default") for name, entry in spec["spec"]["inputs"].items()} | inputs

    def put(value: object) -> object:
        if isinstance(value, dict):
            return {str(put(key)): put(item) for key, item in value.items()}
        if isinstance(value, list):
            return [put(item) for item in value]
        for name, given in known.items():
            value = value.replace(f"$[[ inputs.{name} ]]", given or "") if isinstance(value, str) else value
        return value

    return put(jobs)[inputs.get("name", "opscope")]  # type: ignore[index, no-any-return]


def on_gitlab(
    folder: Path, host: CodeHost, *, change: bool, inputs: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    found = job({"models": "models/kws.tflite", "target": "cortex-m4", **inputs})
    about = {"CI_MERGE_REQUEST_IID": "7"} if change else {"CI_COMMIT_BRANCH": "main"}
    about |= {"GITLAB_CI": "true", "CI_API_V4_URL": host.address, "CI_PROJECT_ID": "42", "CI_DEFAULT_BRANCH": "main"}
    environment = {**clean(), **found["variables"], **about, "OPSCOPE_TOKEN": TOKEN}  # type: ignore[dict-item]
    script = "\n".join(found["script"])  # type: ignore[arg-type]
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_job_of_the_template_does_the_same(repository: Path, models: Path, host: CodeHost) -> None:
    done = on_gitlab(repository, host, change=False, inputs={})
    assert done.returncode == 0, done.stderr
    assert (repository / ".opscope-baselines" / "models" / "kws.tflite.json").is_file()
    host.comments[1] = "<!-- opscope ci: opscope -->\nof an earlier commit"
    shutil.copy(models / "wider.tflite", repository / "models" / "kws.tflite")
    done = on_gitlab(repository, host, change=True, inputs={})
    assert done.returncode == 1, done.stderr
    assert list(host.comments) == [1]
    assert "❌ regression" in host.comments[1]
    assert "PUT /projects/42/merge_requests/7/notes/1" in host.asked
    found = job({"models": "m"})["artifacts"]
    assert found["reports"]["junit"] == "performance/**/*.xml"  # type: ignore[index]
    assert list(repository.glob("performance/**/*.xml"))


def test_inputs_of_the_template_reach_the_shell_by_variables_alone(repository: Path, host: CodeHost) -> None:
    text = (ROOT / "templates" / "opscope.yml").read_text(encoding="utf-8")
    scripts = text[text.index("before_script:") : text.index("artifacts:")]
    assert "$[[" not in scripts
    names = ("models", "target", "options", "baselines", "fail-on")
    assert on_gitlab(repository, host, change=True, inputs=dict.fromkeys(names, HOSTILE)).returncode == 2
    assert not list(repository.parent.rglob("owned"))


def test_what_cannot_be_judged_is_no_pass(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    assert main(["ci", "missing.tflite", "--target", "cortex-m4"]) == 2
    assert "could not be profiled" in Path("performance/comment.md").read_text(encoding="utf-8")
    (repository / "perf" / "models").mkdir(parents=True)
    (repository / "perf" / "models" / "kws.tflite.json").write_text("{}")
    assert main(["ci", "models/kws.tflite", "--target", "cortex-m4"]) == 2
    assert "expected opscope.baseline/1" in capsys.readouterr().err


def test_a_host_is_told_from_its_variables_and_damaged_ones_are_none(tmp_path: Path) -> None:
    assert host_of({}) is None
    event = tmp_path / "event.json"
    for text in ("", "[]", "{", '{"pull_request": 3}', '{"pull_request": {"number": "7"}}'):
        event.write_text(text)
        found = host_of({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "OPSCOPE_TOKEN": "t"})
        assert isinstance(found, GitHub)
        assert not found.can_comment
        assert not found.is_default_branch
    lab = host_of({"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "x", "OPSCOPE_TOKEN": "t"})
    assert isinstance(lab, GitLab)
    assert not lab.can_comment


def test_the_page_uses_inputs_that_there_are() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL))
    step = github["jobs"]["performance"]["steps"][-1]
    assert step["uses"] == "opscope/opscope@v1"
    assert set(step["with"]) <= set(ACTION["inputs"])
    spec, _ = yaml.safe_load_all((ROOT / "templates" / "opscope.yml").read_text(encoding="utf-8"))
    assert set(gitlab["include"][0]["inputs"]) <= set(spec["spec"]["inputs"])
    assert gitlab["include"][0]["remote"].endswith("/v1/templates/opscope.yml")
