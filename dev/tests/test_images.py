# SPDX-License-Identifier: Apache-2.0
"""Images are complete, repeatable, and read back as written."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trapless.base.paths import PYTHONPATH
from trapless.base.ui import UserError
from trapless.guest.images import alternatives, dataset, debian, ext4, fetch, sparse
from trapless.guest.images.rootfs import APPLETS, PACKAGES

from dev import selftests


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_image_is_sound_and_comes_back(tree: Path, volume: ext4.Volume, tmp_path: Path) -> None:
    image = tmp_path / "x.img"
    ext4.make(volume, tree, image)
    checked = subprocess.run(["e2fsck", "-fn", image], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert ext4.label(image) == "trapless-data"
    assert ext4.read_file(image, "/a") == b"alpha\n"
    assert ext4.read_file(image, "/none") is None
    fetch.tree(image, "/sub", tmp_path / "back")
    assert (tmp_path / "back" / "with space").read_bytes() == bytes(range(256)) * 64
    fetch.tree(image, "/none", tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["with space"]


@pytest.fixture
def out(tree: Path, tmp_path: Path) -> Path:
    """Return the folder `out` of a disk."""
    (tmp_path / "disk").mkdir()
    return tree.rename(tmp_path / "disk" / "out")


def test_a_copy_takes_the_place_of_one_of_before(out: Path, volume: ext4.Volume, tmp_path: Path) -> None:
    """Folders, links and files are replaced; the user's other files stay."""
    image, back = tmp_path / "x.img", tmp_path / "back"
    (out / "gone").symlink_to("nowhere")
    (out / "sub").chmod(0o555)
    ext4.make(volume, out.parent, image)
    (back / "sub").mkdir(parents=True)
    for name in ("a", "gone", "sub/with space", "sub/mine"):
        (back / name).write_text("old")
    for _ in range(2):
        fetch.tree(image, "/out", back)
        assert (back / "a").read_text() == "alpha\n"
        assert (back / "sub" / "with space").read_bytes() == bytes(range(256)) * 64
        assert (back / "sub" / "mine").read_text() == "old"
        assert (os.readlink(back / "gone"), os.readlink(back / "link")) == ("nowhere", "a")
    assert sorted(path.name for path in back.iterdir()) == ["a", "gone", "link", "sub"]


COMPLAINTS = "for n in 1 2; do echo 'rdump: No space left on device while writing file' >&2; done"


@pytest.mark.parametrize(("complain", "message"), [
    (f"truncate -s 3 a; {COMPLAINTS}", "No space left on device while writing file"),
    (f"rm a; {COMPLAINTS}", "No space left on device while writing file"),
    ("truncate -s 3 a; kill -9 $$", "debugfs was killed by signal 9"),
    ("rm a", "debugfs wrote nothing"),
    ("echo dump_file: Operation not permitted while changing ownership of ./a >&2", None),
], ids=["cut short", "missing", "killed", "in silence", "not root's"])
def test_half_a_copy_is_none(complain: str, message: str | None, out: Path, volume: ext4.Volume, tmp_path: Path,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    """debugfs ends with status 0 on a full disk. Neither a partial copy nor an older file is taken for the guest's file."""
    image, back, real = tmp_path / "x.img", tmp_path / "back", shutil.which("debugfs")
    shutil.rmtree(out / "sub")
    ext4.make(volume, out.parent, image)
    back.mkdir()
    (back / "a").write_text("old")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "debugfs").write_text(f'#!/bin/sh\n{real} "$@"\ncase "$2" in rdump*/a*) {complain};; esac\nexit 0\n')
    (tmp_path / "bin" / "debugfs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    if message is None:
        fetch.tree(image, "/out", back)
        assert (back / "a").read_text() == "alpha\n"
        return
    with pytest.raises(UserError, match=f"^cannot copy a out of the guest into {back}: {message}$"):
        fetch.tree(image, "/out", back)
    assert [(path.name, path.read_text()) for path in back.iterdir()] == [("a", "old")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a separate file system")
def test_a_full_disk_while_files_come_back(out: Path, volume: ext4.Volume, tmp_path: Path) -> None:
    (out / "big").write_bytes(bytes(1 << 20))
    ext4.make(volume, out.parent, tmp_path / "x.img")
    (tmp_path / "back").mkdir()
    copy = ("from pathlib import Path; from trapless.guest.images import fetch; "
            f"fetch.tree(Path('{tmp_path}/x.img'), '/out', Path('back'))")
    script = f'mount -t tmpfs -o size=256k none back && PYTHONPATH="{PYTHONPATH}" exec "{sys.executable}" -c "{copy}"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    if done.stderr.startswith(("mount:", "unshare:")):
        pytest.skip("cannot mount a tmpfs here")
    assert "UserError: cannot copy big out of the guest into back: No space left on device" in done.stderr


def test_a_disk_that_cannot_be_read_has_no_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "x.img").write_bytes(b"hello")
    with pytest.raises(UserError, match="cannot read /out of the guest's disk x.img: .*short read"):
        fetch.tree(tmp_path / "x.img", "/out", tmp_path / "back")


def test_same_input_same_bytes(tree: Path, volume: ext4.Volume, tmp_path: Path) -> None:
    ext4.make(volume, tree, tmp_path / "1.img")
    (tree / "a").touch()
    (tree / "a").chmod(0o600)
    (tree / "a").chmod(0o644)
    ext4.make(volume, tree, tmp_path / "2.img")
    assert digest(tmp_path / "1.img") == digest(tmp_path / "2.img")


def test_partitioned_disk_holds_the_volume(tree: Path, volume: ext4.Volume, tmp_path: Path) -> None:
    ext4.make(volume, tree, tmp_path / "v.img")
    ext4.partition(tmp_path / "v.img", tmp_path / "d.img", 0x12345678)
    disk = (tmp_path / "d.img").read_bytes()
    assert disk[ext4.MIB:] == (tmp_path / "v.img").read_bytes()
    found = subprocess.run(["partx", "--show", "--noheadings", "--output", "START,SECTORS,UUID", tmp_path / "d.img"],
                           capture_output=True, text=True, check=True).stdout
    assert found.split() == ["2048", str(volume.size // 512), "12345678-01"]


def test_random_file_is_seeded(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        dataset.write_random(tmp_path / name, 5_000_001, seed)
    assert (tmp_path / "a").stat().st_size == 5_000_001
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")


def test_not_an_image(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    assert ext4.label(tmp_path / "x") is None


def test_mirror_is_the_hosts_own() -> None:
    assert debian.mirror().startswith(("http", "file", "copy", "mirror"))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a mirror with one package, and a lock that names it."""
    source = tmp_path / "source"
    (source / "DEBIAN").mkdir(parents=True)
    (source / "DEBIAN/control").write_text("Package: bread\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n")
    (source / "lib").mkdir()
    (source / "lib/loaf").write_text("whole\n")
    deb = tmp_path / "pool" / "bread_1+b1_all.deb"
    deb.parent.mkdir()
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", source, deb], check=True, capture_output=True)
    (tmp_path / "lock").write_text(f"# comment\nriscv64 {digest(deb)} pool/{deb.name} bread,meal\n")
    monkeypatch.setattr(debian, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(debian, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(debian, "mirror", lambda: f"file:{tmp_path}/")
    return deb


def test_locked_packages_are_unpacked(shop: Path, tmp_path: Path) -> None:
    debian.unpack("riscv64", ["bread"], tmp_path / "tree")
    assert (tmp_path / "tree/usr/lib/loaf").read_text() == "whole\n"
    assert (tmp_path / "tree/lib").is_symlink()


def test_a_kept_package_file_that_was_cut_short_is_fetched_again(shop: Path, tmp_path: Path) -> None:
    debian.unpack("riscv64", ["bread"], tmp_path / "tree")
    [kept] = (tmp_path / "cache/debs").glob("*.deb")
    kept.write_bytes(kept.read_bytes()[:100])
    debian.unpack("riscv64", ["meal"], tmp_path / "again")
    assert (tmp_path / "again/usr/lib/loaf").exists()


@pytest.mark.parametrize("trouble", ["gone", "changed", "unknown"])
def test_the_index_decides_when_the_lock_cannot(trouble: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    newer = shop.with_name("bread_2_all.deb")
    shutil.copy(shop, newer)
    if trouble == "gone":
        shop.unlink()
    elif trouble == "changed":
        shop.write_bytes(shop.read_bytes() + b"x")
    asked, found = [], digest(newer)

    def resolve(arch: str, packages: list[str], folder: Path) -> list[debian.Deb]:
        asked.append(packages)
        return [debian.Deb(arch, found, f"pool/{newer.name}", frozenset(packages))]

    monkeypatch.setattr(debian, "_resolve", resolve)
    wanted = "butter" if trouble == "unknown" else "bread"
    debian.unpack("riscv64", [wanted], tmp_path / "tree")
    assert asked == [[wanted]]
    assert ("not in lock" if trouble == "unknown" else "no longer has all of lock") in capsys.readouterr().err
    assert (tmp_path / "tree/usr/lib/loaf").read_text() == "whole\n"
    newer.unlink()
    with pytest.raises(UserError, match=f"{wanted} .riscv64.: the mirror lacks a file that its index names"):
        shutil.rmtree(tmp_path / "cache")
        debian.unpack("riscv64", [wanted], tmp_path / "other")


SCRIPT = """#!/bin/sh
set -e
# update-alternatives --install /usr/bin/no no /usr/bin/no 1
priority=1711
base=/usr/lib/jvm
tools="java keytool"
case "$1" in configure)
    update-alternatives --install /usr/lib/libblas.so.3 \\
        libblas.so.3 /usr/lib/blas/libblas.so.3 10
    for i in $tools; do
        update-alternatives --quiet --install /usr/bin/$i $i ${base}/bin/$i $priority \\
            --slave /usr/share/$i.1 $i.1 $base/man/$i.1
    done
    update-alternatives --install /usr/bin/odd odd $(which even) 10
esac
"""


def test_alternatives_of_a_script_that_is_never_run() -> None:
    """numpy's BLAS is such a link."""
    found, odd = alternatives.read(SCRIPT)
    blas, java, keytool = found
    assert blas == alternatives.Alternative("libblas.so.3", "/usr/lib/libblas.so.3", "/usr/lib/blas/libblas.so.3", 10)
    assert (java.name, java.path, java.priority) == ("java", "/usr/lib/jvm/bin/java", 1711)
    assert keytool.slaves == (("/usr/share/keytool.1", "keytool.1", "/usr/lib/jvm/man/keytool.1"),)
    assert len(odd) == 1 and "even" in odd[0]


def test_the_best_alternative_that_is_there_gets_the_link(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    for name in ("mawk", "original-awk", "own"):
        (tmp_path / "usr/bin" / name).write_text(name)
    (tmp_path / "usr/bin/mawk.1").write_text("manual")
    offered = [alternatives.Alternative("awk", "/bin/awk", f"/usr/bin/{name}", priority,
                                        (("/usr/bin/awk.1", "awk.1", f"/usr/bin/{name}.1"),))
               for name, priority in (("original-awk", 0), ("mawk", 5), ("gawk", 10))]
    alternatives.install(tmp_path, [*offered, alternatives.Alternative("own", "/usr/bin/own", "/usr/bin/mawk", 9)])
    assert os.readlink(tmp_path / "usr/bin/awk") == "/etc/alternatives/awk"
    assert os.readlink(tmp_path / "etc/alternatives/awk") == "/usr/bin/mawk"
    assert os.readlink(tmp_path / "etc/alternatives/awk.1") == "/usr/bin/mawk.1"
    assert (tmp_path / "usr/bin/own").read_text() == "own"


def test_links_of_a_package_are_made(shop: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "DEBIAN/postinst").write_text("#!/bin/sh\nupdate-alternatives --install /usr/bin/roll roll /lib/loaf 1\n")
    (source / "DEBIAN/postinst").chmod(0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", source, shop], check=True, capture_output=True)
    debian.LOCK.write_text(f"riscv64 {digest(shop)} pool/{shop.name} bread\n")
    debian.unpack("riscv64", ["bread"], tmp_path / "tree")
    assert os.readlink(tmp_path / "tree/usr/bin/roll") == "/etc/alternatives/roll"


def test_a_damaged_lock_is_named(shop: Path) -> None:
    debian.LOCK.write_text("riscv64 abc pool/x bread\n")
    with pytest.raises(UserError, match="lock, line 1"):
        debian.locked_debs("riscv64", ["bread"])


def test_the_lock_has_what_guests_are_made_of() -> None:
    for arch in ("riscv64", "amd64"):
        assert debian.locked_debs(arch, PACKAGES)
    assert debian.locked_debs("riscv64", (*PACKAGES, "stress-ng"))
    assert debian.locked_debs("riscv64", (*PACKAGES, *selftests.RUNTIME))
    assert debian.locked_debs("riscv64", selftests.DEVELOPMENT)


def test_applets_stand_once() -> None:
    assert len(APPLETS) == len(set(APPLETS))


def test_a_sparse_data_disk_has_written_blocks_and_takes_no_room() -> None:
    image = sparse.image(16 << 30)
    checked = subprocess.run(["e2fsck", "-fn", image], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    shown = subprocess.run(["debugfs", "-R", f"ex /{dataset.FILE}", image], capture_output=True, text=True, check=True).stdout
    extents = [line for line in shown.splitlines() if line.lstrip().startswith("1/ 1")]
    assert sum(int(line.split()[-1]) for line in extents) == (16 << 30) // ext4.BLOCK  # lengths; a flag would come last
    assert image.stat().st_size > 16 << 30
    assert image.stat().st_blocks * 512 < 16 * ext4.MIB
