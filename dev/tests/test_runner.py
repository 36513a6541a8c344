# SPDX-License-Identifier: Apache-2.0
"""Jobs, command lines and the console, without a guest."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base import process
from trapless.base.paths import MACHINE
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest import job as jobs
from trapless.guest.images import dataset, ext4
from trapless.guest.run import data_disk, parse_size
from trapless.loads import fio as miss_latency
from trapless.results import html, table


def test_job_disk(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("input")
    job = jobs.command_job(["echo", "two words"], "hwdp", (tmp_path / "in.txt",), share=True)
    jobs.write_disk(job, tmp_path / "job.img")
    assert ext4.read_file(tmp_path / "job.img", "/cmd") == b"#!/bin/sh\nexec hwdp -k hwdp -f /data/ -s -- echo 'two words'\n"
    assert ext4.read_file(tmp_path / "job.img", "/in/in.txt") == b"input"
    assert jobs.read_number(tmp_path / "job.img", "/status") is None
    assert ext4.label(tmp_path / "job.img") == jobs.LABEL


def test_inputs_must_differ_in_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for path in (tmp_path / "x", tmp_path / "d" / "x"):
        path.write_text("")
    with pytest.raises(UserError, match="two inputs have the name x"):
        jobs.write_disk(jobs.Job("true", (tmp_path / "x", tmp_path / "d" / "x")), tmp_path / "job.img")


def test_inputs_without_a_name_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine" / "sub").mkdir(parents=True)
    (tmp_path / "mine" / "x").write_text("it\n")
    for place, path in (("mine", "."), ("mine/sub", "..")):
        monkeypatch.chdir(tmp_path / place)
        jobs.write_disk(jobs.Job("true", (Path(path),)), tmp_path / "job.img")
        assert ext4.read_file(tmp_path / "job.img", "/in/mine/x") == b"it\n"


def test_machine_command_line() -> None:
    guest = guests.Guest(Path("K"), Path("R"), data=Path("D"), settings=("ssd.read_us=2.1",), memory="64M", harts=1,
                         smu=False, append="hwdp.ring=64", max_seconds=5)
    command = guests.machine_command(Path("M"), guest, Path("J"), Path("S"), "-")
    assert command[:2] == ["M", "run"]
    text = " ".join(command)
    for part in ("--disk R,snapshot,block=512 --disk J ", "--disk D,snapshot ", "--set ssd.read_us=2.1",
                 "--memory 64M", "--harts 1", "--no-smu", "--max-seconds 5", "--console -", "--json S"):
        assert part in text
    assert "quiet trapless.readahead=0 hwdp.populate=sync hwdp.ring=64" in guest.command_line()
    assert "hwdp.populate" not in replace(guest, populate=None).command_line()
    assert "trapless.readahead" not in replace(guest, readahead=None).command_line()


@pytest.mark.parametrize(("config", "most"), [("out/config", 8), ("tree/.config", 8), (None, 64)])
def test_harts_that_the_kernel_leaves_out_are_refused(config: str | None, most: int, tmp_path: Path) -> None:
    image = tmp_path / ("tree/arch/riscv/boot/Image" if config == "tree/.config" else "out/Image")
    image.parent.mkdir(parents=True)
    image.touch()
    (tmp_path / "own.toml").write_text('extends = "server"\n[machine]\nharts = 16\n')
    (tmp_path / "fewer.toml").write_text('extends = "vc707"\n[machine]\nthreads_per_core = 2\n')
    if config:
        (tmp_path / config).write_text("CONFIG_SMP=y\nCONFIG_NR_CPUS=8\n")
    guest = guests.Guest(image, tmp_path / "root")

    def refused(**changes: object) -> bool:
        for command in (lambda g: guests.machine_command(Path("m"), g, Path("job"), Path("stats"), "-"),
                        lambda g: guests.qemu_command(g, Path("job"))):
            try:
                command(replace(guest, **changes))
            except UserError as error:
                assert "supports at most 8 (CONFIG_NR_CPUS): use --harts 8" in str(error)
                return True
        return False

    assert refused(harts=most) is False
    assert not refused(profile="server")
    assert not refused(profile=str(tmp_path / "fewer.toml"))
    assert not refused(profile="no such profile"), "the machine reports the error"
    for too_many in ({"harts": 9}, {"settings": ("machine.harts=2", "machine.harts = 16")},
                     {"profile": str(tmp_path / "own.toml")}):
        assert refused(**too_many) is (most == 8)


def test_machine_goes_on_from_a_checkpoint() -> None:
    guest = guests.Guest(Path("K"), Path("R"), settings=("ssd.read_us=2.1",), memory="64M")
    command = guests.machine_command(Path("M"), guest, Path("J"), Path("S"), "-", checkpoint=Path("C"))
    assert command[:3] == ["M", "resume", "C"]
    assert "--kernel" not in command and "--append" not in command
    assert "--set ssd.read_us=2.1" in " ".join(command) and "--memory 64M" in " ".join(command)


SIZES = {
    "name", "machine.harts", "machine.threads_per_core", "machine.clock_hz", "machine.timebase_hz", "machine.memory_bytes",
    "smu.present", "smu.pmshr_entries", "smu.prefetch_entries", "ssd.name", "ssd.channels", "ssd.block_bytes",
    "ssd.max_transfer_pages", "ssd.max_io_queues", "ssd.max_queue_entries"}
"""Values of a profile that boots cannot share, because the kernel has read them or the state contains them."""


def test_which_values_may_differ_after_the_boot() -> None:
    """Each new value of a profile must be added to one of the two lists."""
    profile = tomllib.loads((MACHINE / "profiles" / "server.toml").read_text())
    profile["ssd"] = tomllib.loads((MACHINE / "profiles" / "ssd" / f"{profile['ssd']}.toml").read_text())
    keys = {name for name, value in profile.items() if not isinstance(value, dict)}
    keys |= {f"{section}.{name}" for section, values in profile.items() if isinstance(values, dict) for name in values}
    assert {key for key in keys if not guests.is_time(f"{key}=1")} == SIZES
    assert guests.is_time("detail.caches.l2_cycles=9") and guests.is_time("ssd.seed=3")
    assert not guests.is_time("ssd=tlc") and not guests.is_time("ssd.flash.program_us=1") and not guests.is_time("paging=sv48")


def test_options_of_drives() -> None:
    guest = guests.Guest(Path("K"), Path("R"), data=Path("D"), data_options="block=4096,namespace=E", job_options="ssd=tlc")
    text = " ".join(guests.machine_command(Path("M"), guest, Path("J"), Path("S"), "-"))
    for part in ("--disk R,snapshot,block=512 ", "--disk J,ssd=tlc ", "--disk D,snapshot,block=4096,namespace=E "):
        assert part in text


def test_data_disk_of_the_command_line(volume: ext4.Volume, tree: Path, tmp_path: Path) -> None:
    image = tmp_path / "a,b.img"
    ext4.make(volume, tree, image)
    assert data_disk(None) == (None, False, "")
    assert data_disk(f"{image}") == (image, True, "")
    assert data_disk(f"{image},ro") == (image, True, "ro")
    assert data_disk(f"{image},ssd=tlc,block=4096,ro") == (image, True, "ssd=tlc,block=4096,ro")
    assert data_disk(f"{image},rw") == (image, True, "rw")
    with pytest.raises(UserError, match="neither an image file"):
        data_disk(f"{image},blocks=4096")


@pytest.mark.parametrize("options", ["rw", "block=4096,rw", "rw,ssd=tlc", "rw,namespace=E"])
def test_a_disk_whose_writes_are_dropped_is_not_written_to(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine takes the last word: `snapshot,rw` would change an image that others share."""
    monkeypatch.setattr(dataset, "image", lambda size: Path("D"))
    with pytest.raises(UserError, match=f"^--data 64M,{options}: leave rw out: what the guest writes to random data is dropped$"):
        data_disk(f"64M,{options}")
    guest = guests.Guest(Path("K"), Path("R"), data=Path("D"), data_options=options)
    with pytest.raises(UserError, match=f"^D,{options}: leave rw out: what the guest writes to this disk is dropped$"):
        guests.machine_command(Path("M"), guest, Path("J"), Path("S"), "-")
    kept = guests.machine_command(Path("M"), replace(guest, data_kept=True), Path("J"), Path("S"), "-")
    assert f"D,{options}" in kept


def test_a_namespace_of_ones_own_may_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "image", lambda size: Path("D"))
    data, kept, options = data_disk("64M,ro,namespace=E,rw")
    guest = guests.Guest(Path("K"), Path("R"), data=data, data_kept=kept, data_options=options)
    assert "D,snapshot,ro,namespace=E,rw" in guests.machine_command(Path("M"), guest, Path("J"), Path("S"), "-")


def feed(parts: list[bytes], returns: int = 1, powered_off: bool = True) -> bytes:
    console = process.ConsoleFilter(returns)
    return b"".join(console.feed(part) for part in parts) + console.rest(powered_off)


FAREWELL = "reboot: Power down\r\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("of a program\r\r\n", "of a program\r\n"),
        ("10 %\r20 %\r\r\r", "10 %\r20 %\r\r\r"),
        (f"last\r\n[   12.345678] {FAREWELL}", "last\n"),
        (f"last\r\n{FAREWELL}", "last\n"),
        (f"no end{FAREWELL}", "no end"),
        (f"{FAREWELL}{FAREWELL}", "reboot: Power down\n"),
        (f"{FAREWELL}more\r\n{FAREWELL}", "reboot: Power down\nmore\n"),
        ("reboot: Power up\r\n", "reboot: Power up\n"),
        ("[not a time]\r\n", "[not a time]\n"),
        ("prompt> re", "prompt> re"),
        ("re", "re"),
        ("re\r\r\nre\r", "re\r\nre\r"),
    ],
)
def test_console(text: str, shown: str) -> None:
    """Everything that a program prints is shown."""
    for parts in ([text], list(text), text.partition("\r")):
        assert feed([part.encode() for part in parts]).decode() == shown


def test_console_of_a_guest_that_does_not_power_off() -> None:
    assert feed([FAREWELL.encode()], powered_off=False) == b"reboot: Power down\n"


def test_console_with_two_carriage_returns() -> None:
    """QEMU's hvc0 ends a line with two carriage returns."""
    assert feed([b"one\r\r", b"\ntwo\r\ntext\r\r\r", b"\nreboot: Power down\r\r\n"], returns=2) == b"one\ntwo\ntext\r\n"


def test_sizes() -> None:
    assert parse_size("320M") == 320 << 20
    assert parse_size("1G") == 1 << 30
    assert parse_size("disk.img") is None


def records() -> list[dict]:
    """Return records like those of a demo."""
    base = {"ops": 100, "p50_us": 1.0, "p99_us": 2.0, "p999_us": 3.0, "resident": 0, "profile": "vc707", "settings": [],
            "fio": "fio-3.39", "read_bytes": 1 << 26, "file_bytes": 1 << 28, "threads": 1, "fio_seed": 8, "git": "abc",
            "sim_seconds": 1.0, "host_seconds": 2.0, "mips": 150.0, "nondevice_us": None, "distinct_pages": 100}
    miss = {"mean_us": 29.0, "device_mean_us": 28.2, "nondevice_mean_us": 0.8, "steps": {"walk": 0.1, "device": 28.2}}
    return miss_latency.breakdown([
        base | {"kind": "ideal", "mean_us": 30.0, "device_us": 0.0, "nondevice_us": 0.0, "hw_misses": 0, "os_faults": 0,
                "kernel_instructions_per_op": 10.0},
        base | {"kind": "osdp", "mean_us": 260.0, "device_us": 28.2, "hw_misses": 0, "os_faults": 100,
                "kernel_instructions_per_op": 18000.0},
        base | {"kind": "hwdp", "mean_us": 60.0, "device_us": 28.2, "nondevice_us": 0.8, "hw_misses": 100, "os_faults": 0,
                "kernel_instructions_per_op": 1800.0, "hw_miss": miss},
    ])


def test_breakdown() -> None:
    ideal, osdp, hwdp = records()
    assert osdp["nondevice_us"] == pytest.approx(230 - 28.2)
    assert hwdp["nondevice_us"] == 0.8
    assert hwdp["nondevice_by_difference_us"] == pytest.approx(30 - 28.2)
    assert hwdp["latency_ratio_to_osdp"] == pytest.approx(260 / 60)
    assert hwdp["kernel_instructions_share_of_osdp"] == pytest.approx(0.1)
    assert "miss_by_difference_us" not in ideal


def test_report_is_self_contained(tmp_path: Path) -> None:
    html.write(records(), tmp_path / "report.html", miss_latency.COLUMNS)
    page = (tmp_path / "report.html").read_text()
    assert "230.0 (28.2 + 201.8)" in page
    assert "823.9" in page
    assert "viewport" in page and "prefers-color-scheme: dark" in page
    for outside in ("http://", "https://", "<script", "<link", "src="):
        assert outside not in page


def test_unknown_cells_are_dashes() -> None:
    assert table.cells({"kind": "x"}, miss_latency.COLUMNS)[1:] == ["-"] * (len(miss_latency.COLUMNS) - 1)


@pytest.mark.parametrize("quiet", [True, False])
def test_guests_of_qemu_have_a_console_from_the_beginning(quiet: bool, tmp_path: Path) -> None:
    """Otherwise run_on_qemu could not see that QEMU's threads killed the guest."""
    (tmp_path / "bzImage").touch()
    guest = guests.Guest(tmp_path / "bzImage", Path("R"), arch=build.ARCHS["x86_64"], quiet=quiet)
    command = guests.qemu_command(guest, Path("job"))
    words = command[command.index("-append") + 1].split()
    assert words.count("earlyprintk=serial") == 1 and "earlycon=sbi" not in words


@pytest.mark.parametrize(("threads", "consoles", "boots"), [
    (True, ["Oops: int3: 0000", "x Oops: int3: 0000", ""], 3),
    (True, ["Oops: int3"] * (guests.BOOTS + 1), guests.BOOTS),
    (True, ["Oops: general protection fault"], 1),
    (False, ["Oops: int3", ""], 1),
])
def test_guests_that_qemu_kills_are_booted_again(threads: bool, consoles: list[str], boots: int,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    left = list(consoles)
    monkeypatch.setattr(process, "run", lambda *_, **__: process.Ended(0, left.pop(0), "", 0))
    with pytest.raises(UserError, match="the guest ended before its command did"):
        guests.run_on_qemu(guests.Guest(Path("K"), Path("R"), threads=threads), jobs.Job("true", ()))
    assert len(consoles) - len(left) == boots
