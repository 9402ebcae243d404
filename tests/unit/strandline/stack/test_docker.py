"""The Docker way, with a script in place of `docker`: what is asked of it, and what its failures become."""

import json
import stat
from pathlib import Path

import pytest
import yaml

from strandline.stack import DockerStack, StackError, state
from strandline.stack.docker import engine_answers
from tests.unit.strandline.stack.doubles import script


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes its arguments in `calls` and claims that kafka runs; every service answers."""
    monkeypatch.setattr("strandline.stack.docker.PROBES", dict.fromkeys(("kafka", "neo4j", "weaviate"), lambda _: True))
    text = f'echo "$@" >> {tmp_path}/calls\ncase "$*" in *" ps "*) echo kafka;; *logs*) echo said;; esac'
    return script(tmp_path / "docker", text)


def test_up_renders_a_private_compose_file_and_waits_for_health(docker: Path, tmp_path: Path) -> None:
    stack = DockerStack(tmp_path / "stack", docker=str(docker))
    addresses = stack.up()

    file = stack.compose_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    services = yaml.safe_load(file.read_text())["services"]
    assert services["neo4j"]["environment"]["NEO4J_AUTH"] == f"neo4j/{addresses.neo4j_password}"
    assert services["kafka"]["ports"] == [f"{addresses.kafka_bootstrap}:9092"]
    assert _calls(tmp_path) == [
        f"compose --project-name {stack.project} --file {file} up --detach --wait kafka neo4j weaviate"
    ]


def test_up_again_keeps_ports_secrets_and_the_clusters_id(docker: Path, tmp_path: Path) -> None:
    stack = DockerStack(tmp_path / "stack", docker=str(docker))
    first = stack.up()
    text = stack.compose_file.read_text()
    assert DockerStack(tmp_path / "stack", docker=str(docker)).up() == first
    assert stack.compose_file.read_text() == text


def test_stop_removes_containers_and_leaves_volumes(docker: Path, tmp_path: Path) -> None:
    stack = DockerStack(tmp_path / "stack", docker=str(docker))
    stack.up(("kafka",))
    stack.stop()
    assert _calls(tmp_path)[-1].endswith("rm --stop --force kafka neo4j weaviate")


def test_status_and_logs_come_from_compose(docker: Path, tmp_path: Path) -> None:
    stack = DockerStack(tmp_path / "stack", docker=str(docker))
    stack.up()
    assert [(row.name, row.running) for row in stack.status()] == [
        ("kafka", True),
        ("neo4j", False),
        ("weaviate", False),
    ]
    assert stack.log_tail("kafka", 5) == "said\n"


def test_two_folders_are_two_projects(tmp_path: Path) -> None:
    assert DockerStack(tmp_path / "a").project != DockerStack(tmp_path / "b").project


def test_a_failing_compose_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    docker = script(tmp_path / "docker", "echo no space left on device >&2; exit 17")
    with pytest.raises(StackError, match=r"(?s)`docker compose up` failed \(17\).*no space left on device.*--native"):
        DockerStack(tmp_path / "stack", docker=str(docker)).up()


def test_a_native_folder_is_not_taken_over(tmp_path: Path) -> None:
    state.save(tmp_path, state.State("native", state.choose_ports(standard=False)))
    with pytest.raises(StackError, match="There is no Docker stack"):
        DockerStack(tmp_path).status()


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("exit 0", True),
        ('[ "$1" = info ] && exit 1 || exit 0', False),
        ('[ "$1" = compose ] && exit 1 || exit 0', False),
    ],
    ids=["all there", "no engine", "no compose"],
)
def test_an_engine_counts_with_compose_only(text: str, answers: bool, tmp_path: Path) -> None:
    assert engine_answers(str(script(tmp_path / "docker", text))) is answers


def test_no_docker_is_no_engine(tmp_path: Path) -> None:
    assert not engine_answers(str(tmp_path / "docker"))


def test_the_state_says_how_the_stack_runs(docker: Path, tmp_path: Path) -> None:
    DockerStack(tmp_path / "stack", docker=str(docker)).up()
    assert json.loads((tmp_path / "stack" / "state.json").read_text())["mode"] == "docker"


def _calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()
