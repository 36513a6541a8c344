# SPDX-License-Identifier: Apache-2.0
"""The launcher's set-up when something is missing or fails, on a host whose apt-get, sudo and Python only pretend."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trapless.base.paths import ROOT

from dev.tests.test_signals import marked, wait_for

# A fake Python: its environments have a pip that fails as $PIP says. The command line itself runs with the real one.
PYTHON = f"""#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
"-m pip") eval "$PIP" ;;
"-m trapless.cli") exec {sys.executable} -S "$@" ;;
"-c import rich") exit 1 ;;
-c*) exit 0 ;;
*) exec {sys.executable} "$@" ;;
esac
"""
HANG = "(sleep 1000; true) & sleep 1000 & touch $READY; wait"


class Host:
    """A host with the programs of this one, except `bc`, which is to be installed, and with fake programs such as sudo."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.bin = folder, folder / "cache", folder / "bin"
        self.bin.mkdir()
        for place in ("/usr/bin", "/bin"):
            for program in Path(place).iterdir():
                if program.name not in ("bc", "sudo") and not os.path.lexists(self.bin / program.name):
                    (self.bin / program.name).symlink_to(program)
        self.put("python3", PYTHON)
        self.put("apt-get", '#!/bin/sh\ncase "$*" in *update) eval "$UPDATE" ;; *install*) eval "$INSTALL" ;; esac\n')
        self.put("id", "#!/bin/sh\necho 0\n")
        # These tests may themselves run from a bundle.
        ours = ("TRAPLESS_", "APT_CONFIG", "CARGO_HOME", "PIP_")
        self.env = {**{name: value for name, value in os.environ.items() if not name.startswith(ours)},
                    "PATH": str(self.bin), "TRAPLESS_CACHE": str(self.cache), "READY": str(folder / "ready"),
                    "TEST_OF": str(folder), "TRAPLESS_BUNDLE": str(folder / "none")}

    def put(self, name: str, text: str) -> None:
        """Add a fake program."""
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)


    def start(self, *arguments: str, ignored: bool = False, **more: str) -> subprocess.Popen:
        """Start the launcher, with SIGINT `ignored`, as in the background of a script."""
        command = [ROOT / "trapless", *arguments]
        return subprocess.Popen(["env", "--ignore-signal=INT", *command] if ignored else command, env=self.env | more, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, *arguments: str, **more: str) -> tuple[int, str, str]:
        """Return the status, the output, and the last line of complaint."""
        process = self.start(*arguments, **more)
        said, complained = process.communicate(timeout=60)
        assert "Traceback" not in complained and ": line " not in complained
        return process.returncode, said, complained.strip().splitlines()[-1] if complained.strip() else ""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_without_root_and_sudo(host: Host) -> None:
    host.put("id", "#!/bin/sh\necho 1000\n")
    status, _, line = host.run("demo")
    assert status == 1
    assert line.startswith("trapless: missing Debian packages, and neither root nor sudo to install them; as root: apt-get ")
    assert " bc" in line


def test_with_a_sudo_that_refuses(host: Host) -> None:
    host.put("id", "#!/bin/sh\necho 1000\n")
    host.put("sudo", "#!/bin/sh\necho sudo: no >&2; exit 1\n")
    status, _, line = host.run("demo")
    assert status == 1
    assert line.startswith("trapless: sudo does not let you install; as root: apt-get update && apt-get install ")


@pytest.mark.parametrize(("install", "reason"), [
    ("echo Reading; echo E: Unable to locate package bc; echo E: more; exit 100", "E: Unable to locate package bc"),
    ("echo 'dpkg: error processing package bc (--configure):'; echo ' exit status 1'; echo E: Sub-process; exit 100",
     "dpkg: error processing package bc (--configure): exit status 1"),
    ("echo dpkg: error: x; echo ' failed to write (No space left on device)'; echo E: y; exit 100", "disk full"),
    ("echo killed; exit 9", "killed"),
])
def test_apt_fails(host: Host, install: str, reason: str) -> None:
    """The terminal shows the reason, and the file with the rest of the output."""
    status, _, line = host.run("demo", UPDATE="true", INSTALL=install)
    assert status == 1
    assert line.startswith("trapless: apt-get could not install ")
    assert line.endswith(f": {reason} (whole log: {host.cache}/apt.log)")


def test_the_lists_cannot_be_had(host: Host) -> None:
    process = host.start("demo", UPDATE="echo 'E: Failed to fetch http://x  Temporary failure resolving x'; exit 100",
                         INSTALL="exit 1")
    assert (f"trapless: apt-get update failed: E: Failed to fetch http://x Temporary failure resolving x (whole log: "
            f"{host.cache}/apt-update.log); going on with the lists at hand\n") in process.communicate(timeout=60)[1]


@pytest.mark.parametrize("half", [False, True])
def test_doctor_after_a_failed_pip(host: Host, half: bool) -> None:
    """`doctor` prints one line about the failure among the others, and installs nothing."""
    pip = "echo WARNING: Retrying after error; echo ERROR: No matching distribution found for rich; exit 1"
    status, _, line = host.run("demo", UPDATE="true", INSTALL="true", PIP=pip)
    log = f"(whole log: {host.cache}/pip.log)"
    assert status == 1 and line.startswith("trapless: pip could not install the packages of ")
    assert line.endswith(f": ERROR: No matching distribution found for rich {log}")
    if not half:
        subprocess.run(["rm", "-r", host.cache / "venv"], check=True)
    status, said, line = host.run("doctor", UPDATE="exit 1", INSTALL="exit 1")
    assert (status, line) == (1, "")
    assert [word for word in said.splitlines() if "Python packages" in word] == [
        f"missing Python packages in {host.cache}/venv (./trapless setup installs them): pip failed: "
        f"ERROR: No matching distribution found for rich {log}"]


@pytest.mark.parametrize("command", ["help", "--help", "doctor", "test --help", "run -h"])
def test_what_needs_no_package_installs_none(host: Host, command: str) -> None:
    status, said, line = host.run(*command.split(), UPDATE="touch $READY", INSTALL="touch $READY")
    assert status == (command == "doctor") and line == "" and said
    assert not Path(host.env["READY"]).exists()


@pytest.mark.parametrize(("command", "line"), [
    ("rnu -- true", "trapless: no such command: rnu; did you mean run?"),
    ("experiment", "trapless: experiment: this command is now ./trapless study"),
    ("__main__", "trapless: no such command: __main__; there are demo, run, profile, sweep, study, report, compare, trace, "
     "python, dev, help, test, setup, doctor, bundle"),
])
def test_an_unknown_command_installs_nothing(host: Host, command: str, line: str) -> None:
    assert host.run(*command.split(), UPDATE="touch $READY", INSTALL="touch $READY") == (2, "", line)
    assert not Path(host.env["READY"]).exists()


def test_an_environment_of_another_python_is_made_again(host: Host) -> None:
    """An upgrade of Debian removes the Python to which the environment has a link."""
    requirements = (ROOT / "python/requirements.txt").read_bytes()
    (host.cache / "venv/bin").mkdir(parents=True)
    (host.cache / "venv/bin/python").symlink_to("/no/such/python3.11")
    stamp = subprocess.run(["sha256sum"], input=requirements, capture_output=True, check=True).stdout.decode().split()[0]
    (host.cache / "venv/stamp").write_text(f"{stamp}\n")
    status, _, line = host.run("demo", UPDATE="true", INSTALL="true", PIP="echo ERROR: asked; exit 1")
    assert status == 1 and "ERROR: asked" in line


@pytest.mark.parametrize(("number", "ignored"), [
    (signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGINT, False), (signal.SIGTERM, True)])
@pytest.mark.parametrize("stage", ["UPDATE", "INSTALL", "PIP", "lock"])
def test_a_signal_ends_the_set_up(host: Host, stage: str, number: signal.Signals, ignored: bool) -> None:
    """The signal goes only to the launcher, also where SIGINT is ignored. The next launcher finds no lock."""
    host.cache.mkdir()
    with open(host.cache / "setup.lock", "w") as lock:
        if stage == "lock":
            fcntl.flock(lock, fcntl.LOCK_EX)
        launcher = host.start("demo", ignored=ignored, **({"UPDATE": "true", "INSTALL": "true"} | {stage: HANG}))
        if stage == "lock":
            time.sleep(1)
        else:
            wait_for(Path(host.env["READY"]))
        launcher.send_signal(number)
        try:
            _, said = launcher.communicate(timeout=10)
            assert marked(str(host.folder)) == {}
        finally:
            for left in marked(str(host.folder)):
                os.kill(left, signal.SIGKILL)
        words = {signal.SIGTERM: "terminated", signal.SIGHUP: "hung up", signal.SIGINT: "interrupted"}
        assert (launcher.returncode, said.splitlines()[-1]) == (128 + number, f"trapless: {words[number]}")
        if stage != "lock":
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_second_signal_waits_for_nothing(host: Host) -> None:
    launcher = host.start("demo", UPDATE="true", INSTALL=f"trap : INT TERM; {HANG}; wait; wait; sleep 1000")
    wait_for(Path(host.env["READY"]))
    launcher.send_signal(signal.SIGTERM)
    time.sleep(3)
    assert launcher.poll() is None, "what is installed comes to its end"
    launcher.send_signal(signal.SIGTERM)
    _, said = launcher.communicate(timeout=10)
    assert launcher.returncode == 143
    assert "trapless: waiting for what is being installed (once more ends that at once)\n" in said
    assert marked(str(host.folder)) == {}


def put_bundle(host: Host, release: str = "") -> Path:
    """Add a bundle for this machine or for another one, in a folder with a space in its name."""
    asked = '. /etc/os-release; echo "$ID ${VERSION_ID:-} $(dpkg --print-architecture)"'
    here = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    bundle = host.folder / "a bundle"
    for name in ("debs", "wheels", "cargo", "cache/debs"):
        (bundle / name).mkdir(parents=True)
    (bundle / "cache/debs/one.deb").write_text("one")
    version = "{}.{}".format(*sys.version_info)
    (bundle / "manifest").write_text(f"for={release or here}\npython={version}\ncommit=abc\n")
    host.env["TRAPLESS_BUNDLE"] = str(bundle)
    return bundle


def test_all_comes_from_a_bundle(host: Host) -> None:
    """apt uses only the bundle's repository in these calls; pip and cargo use no network; files for the cache are there."""
    bundle = put_bundle(host)
    note = host.folder / "note"
    show = f"env >{note}-$0; cat $APT_CONFIG $(dirname $APT_CONFIG)/sources.list >>{note}-$0"
    status, _, line = host.run("demo", UPDATE=show.replace("$0", "apt"), INSTALL="true",
                               PIP=f"{show.replace('$0', 'pip')}; echo ERROR: asked; exit 1")
    assert status == 1 and f" from {bundle}: ERROR: asked" in line
    address = str(bundle).replace(" ", "%20")
    for said in (Path(f"{note}-apt").read_text().splitlines(), Path(f"{note}-pip").read_text().splitlines()):
        assert f"deb [trusted=yes check-date=no] file://{address}/debs ./" in said
        assert f'Dir::Etc::sourcelist "{host.cache}/bundle-apt/sources.list";' in said
        assert 'Dir::Etc::sourceparts "/dev/null";' in said
        assert f'Dir::State::lists "{host.cache}/bundle-apt/lists";' in said
        assert {"PIP_NO_INDEX=1", f"PIP_FIND_LINKS=file://{address}/wheels", f"CARGO_HOME={bundle}/cargo"} <= set(said)
    assert (host.cache / "debs/one.deb").read_text() == "one"


def test_sudo_keeps_the_bundle(host: Host) -> None:
    """sudo gives a command a separate environment."""
    put_bundle(host)
    host.put("id", "#!/bin/sh\necho 1000\n")
    host.put("sudo", '#!/bin/sh\n[ "$2" != true ] || exit 0\nshift\nexec env -u APT_CONFIG "$@"\n')
    status, _, line = host.run("demo", UPDATE="true", INSTALL='echo "E: $APT_CONFIG"; exit 100')
    assert status == 1 and f": E: {host.cache}/bundle-apt/apt.conf (whole log: " in line


def test_without_a_bundle_apt_is_as_configured(host: Host) -> None:
    status, _, line = host.run("demo", UPDATE="true", INSTALL='echo "E: ${APT_CONFIG:-unset} ${CARGO_HOME:-unset}"; exit 100')
    assert status == 1 and ": E: unset " in line


def test_a_bundle_for_another_release(host: Host) -> None:
    bundle = put_bundle(host, "debian 11 amd64")
    status, _, line = host.run("demo", UPDATE="exit 1", INSTALL="exit 1")
    assert status == 1
    assert line.startswith(f"trapless: {bundle} is for debian 11 amd64, this machine is ")
    assert line.endswith(": make a bundle on such a machine, or delete that folder")


def test_a_bundle_that_is_not_whole_is_none(host: Host) -> None:
    (put_bundle(host) / "manifest").unlink()
    status, _, line = host.run("demo", UPDATE="true", INSTALL='echo "E: ${APT_CONFIG:-unset}"; exit 100')
    assert status == 1 and ": E: unset " in line


def test_all_packages_are_listed_wherever_it_runs(host: Host) -> None:
    """A bundle has what a bare machine needs, not only what this machine lacks."""
    status, said, _ = host.run("--packages")
    assert status == 0
    asked = set(said.split())
    assert {"python3", "gcc", "bc", "e2fsprogs", "linux-source-6.12", "maven", "chromium", "opensbi", "shellcheck"} <= asked
    # Rust and its checkers come from the same release.
    web = "-web" if "rustc-web" in asked else ""
    assert {f"rustc{web}", f"cargo{web}", f"rustfmt{web}", f"rust{web}-clippy"} <= asked


@pytest.mark.parametrize(("command", "asked"), [("demo", False), ("test", True)])
def test_only_tests_need_what_checks_code(host: Host, command: str, asked: bool) -> None:
    (host.bin / "shellcheck").unlink(missing_ok=True)
    status, _, line = host.run(command, UPDATE="true", INSTALL="echo E: no; exit 100")
    assert status == 1 and line.startswith("trapless: apt-get could not install ")
    assert (" shellcheck" in line) == asked
    assert asked or not {"rustfmt", "clippy"} & set(re.findall(r"rustfmt|clippy", line))
