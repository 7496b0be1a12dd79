"""Whole nodes that run apps in Python. They need the binary: BURNET_BINARY names it, as `cargo xtask test` does."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
BINARY = os.environ.get("BURNET_BINARY", "")
PATIENCE_S = 60.0
"""How long anything may take that a test waits for. It never passes by waiting."""

pytestmark = pytest.mark.skipif(not BINARY, reason="BURNET_BINARY names no burnet; cargo xtask test builds one")


class Node:
    """A running node, and what it says."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.socket = folder / "n.sock"
        self.log = folder / "node.log"
        # The interpreter of the tests is the first in the path, as in an environment that was activated.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        # What is granted is the business of other tests; the examples say it themselves.
        where = ["--listen", self.address, "--socket", str(self.socket), "--die-with-parent"]
        run = [BINARY, "run", "--grant-all", *where, *words]
        around = {**os.environ, "PATH": path, "BURNET_STATE": str(folder / "state")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(run, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=around)

    def app(self) -> dict[str, Any]:
        """How its one app fares; nothing until the node answers."""
        asked = [BINARY, "app", "list", "--json", "--socket", str(self.socket)]
        answer = subprocess.run(asked, capture_output=True, check=False, timeout=PATIENCE_S)
        apps = json.loads(answer.stdout) if answer.returncode == 0 else []
        return apps[0] if apps else {}

    def wait(self, what: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until this holds of its app."""
        began = time.monotonic()
        while not until(app := self.app()):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() - began < PATIENCE_S, f"not so in time: {what}: {app}\n{self.log.read_text()}"
            time.sleep(0.05)
        return app

    def ping_all(self) -> str:
        """What an emulated network says of itself, when all hosts have pinged all."""
        emulate = [BINARY, "emulate", "--topo", "tree,2", "--controller", self.address, "--ping-all"]
        ended = subprocess.run(emulate, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert ended.returncode == 0, ended.stdout + ended.stderr + self.log.read_text()
        return ended.stdout


@contextmanager
def node(folder: Path, *words: str | Path) -> Iterator[Node]:
    """A node that ends with its test."""
    running = Node(folder, [str(word) for word in words])
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(PATIENCE_S)


def app_file(folder: Path, text: str) -> Path:
    """An app of a test's own."""
    file = folder / "own.py"
    file.write_text(text)
    return file


def has_subscribed(app: dict[str, Any]) -> bool:
    return bool(app) and app["commands"] > 0


@pytest.mark.parametrize("example", ["learning_switch.py", "hub.py"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_ping_is_lost(tmp_path: Path, example: str, workers: str) -> None:
    with node(tmp_path, "--app", EXAMPLES / example, "--workers", workers) as running:
        running.wait("it has subscribed", has_subscribed)
        assert "0% dropped (12/12 received)" in running.ping_all()
        assert running.app()["dropped"] == 0


def test_a_handler_that_raises_ends_the_process_and_the_node_starts_it_anew(tmp_path: Path) -> None:
    broken = app_file(
        tmp_path,
        "import burnet\n"
        "class Broken(burnet.App):\n"
        "    def interests(self): return burnet.Interests().ticks()\n"
        "    def on_tick(self, now_ms, out): raise KeyError('what was never there')\n"
        "burnet.run(Broken)\n",
    )
    with node(tmp_path, "--app", broken) as running:
        app = running.wait("it was started anew", lambda app: bool(app) and app["status"]["restarts"] > 0)
        assert app["status"]["last_end"]["reason"] == "exit code 1"
        assert app["status"]["last_end"]["last_line"] == "KeyError: 'what was never there'"
        assert "Traceback" in running.log.read_text()


def test_settings_that_an_app_refuses_are_said_in_a_sentence(tmp_path: Path) -> None:
    config = tmp_path / "burnet.toml"
    config.write_text(f'[app.firewall]\npath = "{EXAMPLES}/firewall.py"\n[app.firewall.settings]\nblock = []\n')
    with node(tmp_path, "--config", config) as running:
        app = running.wait("it has ended", lambda app: bool(app) and app["status"]["last_end"] is not None)
        assert app["status"]["last_end"]["reason"] == "exit code 2"
        assert app["status"]["last_end"]["last_line"] == "the firewall has no setting block; it has `blocked`"


def test_the_zone_shows_an_app_in_python_nothing_but_what_it_runs_from(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a key")
    curious = app_file(
        tmp_path,
        "import burnet, pathlib\n"
        "class Curious(burnet.App):\n"
        "    def on_start(self, out):\n"
        f"        print(pathlib.Path({str(tmp_path / 'secret.txt')!r}).read_text())\n"
        "burnet.run(Curious)\n",
    )
    with node(tmp_path, "--app", curious) as running:
        app = running.wait("it has ended", lambda app: bool(app) and app["status"]["last_end"] is not None)
        line = app["status"]["last_end"]["last_line"]
        assert line.startswith(("FileNotFoundError", "PermissionError")), line


def test_an_interpreter_without_the_module_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.symlink_to(shutil.which("true") or "/bin/true")
    config = tmp_path / "burnet.toml"
    config.write_text(f'[python]\ninterpreter = "{bare}"\n')
    file = app_file(tmp_path, "")
    where: list[str | Path] = ["--config", config, "--socket", tmp_path / "n.sock", "--listen", "127.0.0.1:0"]
    ended = subprocess.run(
        [BINARY, "run", "--grant-all", *where, "--app", file],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 2
    assert f"its interpreter {bare} is no Python" in ended.stderr
