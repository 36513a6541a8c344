// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim record --with`: the two tools see the same accesses. Needs valgrind and a C compiler.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use trapless_trace::{Entry, Reader};

/// A program that does what valgrind translates in different ways: accesses of all sizes, also across lines and pages; x87, SSE
/// and AVX; string instructions; atomic ones; those that valgrind leaves to functions; a child; signals; memory of its own.
const PROGRAM: &str = r#"
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char space[1 << 16] __attribute__((aligned(4096)));
static volatile sig_atomic_t signals;

static void on_signal(int number) { signals += number; }

int main(void)
{
    volatile long double wide = 1;
    for (int n = 0; n < 200; n++) {
        char *at = space + 4096 * (n % 15) + 4096 - n % 70;
        memcpy(at, &n, sizeof n);
        *(volatile uint64_t *)(at + 3) += n;
        *(volatile uint8_t *)(at + 1) ^= n;
        *(volatile uint16_t *)(at + 5) = n;
        wide = wide * 1.01L + sqrtl(n);
        memcpy(at + 16, (const void *)&wide, sizeof wide);
    }
    char *from = space, *to = space + 30000;
    size_t count = 5000;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    count = 700, to = space + 100;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    _Atomic uint64_t *counter = (void *)(space + 64);
    for (uint64_t n = 0; n < 50; n++) {
        uint64_t old = n;
        atomic_fetch_add(counter, n);
        atomic_compare_exchange_strong(counter, &old, 3);
        __asm__ volatile("lock btsq %1, %0" : "+m"(*counter) : "r"(n & 63) : "memory", "cc");
    }
    struct { uint64_t low, high; } pair = {1, 2};
    uint64_t a = 1, d = 2, b = 3, c = 4;
    __asm__ volatile("lock cmpxchg16b %0" : "+m"(*(__int128 *)(space + 128)), "+a"(a), "+d"(d) : "b"(b), "c"(c) : "memory", "cc");
    __asm__ volatile("fxsave %0" : "=m"(*(char (*)[512])(space + 1024)));
    __asm__ volatile("fnsave %0; frstor %0" : "=m"(*(char (*)[108])(space + 2061)));
    __asm__ volatile("movups %%xmm0, %0; movups %1, %%xmm1" : "=m"(*(char (*)[16])(space + 4090)) : "m"(pair) : "xmm1");
    if (__builtin_cpu_supports("avx2")) {
        uint64_t where[4] = {0, 100, 9000, 64}, mask[4] = {~0ul, 0, ~0ul, 0};
        __asm__ volatile("vmovdqu %1, %%ymm1; vmovdqu %2, %%ymm2; vpgatherqq %%ymm2, (%0,%%ymm1,1), %%ymm3;"
                         "vmovdqu %2, %%ymm2; vpmaskmovq %%ymm3, %%ymm2, 8190(%0); vpmaskmovq 4000(%0), %%ymm2, %%ymm4;"
                         "vmovdqu %%ymm3, 50(%0); vzeroupper"
                         : : "r"(space), "m"(where), "m"(mask) : "memory", "ymm1", "ymm2", "ymm3", "ymm4");
    }
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    char *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < 1 << 20; n += 4000)
        more[n] = n;
    if (fork() == 0) {
        for (int n = 0; n < 1 << 20; n += 64)
            more[n]++;
        _exit(0);
    }
    wait(NULL);
    printf("%d %.3f\n", (int)signals, (double)wide);
    return 0;
}
"#;

fn pagesim(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).current_dir(dir).args(arguments).output().unwrap()
}

fn entries(file: &Path) -> Vec<Entry> {
    let reader = Reader::new(BufReader::new(File::open(file).unwrap())).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn sums(dir: &Path, trace: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join(format!("{trace}.json"))).unwrap()).unwrap()
}

/// Records the whole or a part with both tools, and finds the same; what that is.
fn same(dir: &Path, part: &[&str], command: &[&str]) -> Vec<Entry> {
    let [tracer, mut lackey] = ["tracer", "lackey"].map(|tool| {
        let out = format!("{tool}.trace");
        let done = pagesim(dir, &[&["record", "--with", tool, "--out", &out], part, &["--"], command].concat());
        assert!(done.status.success(), "{tool}: {done:?}");
        (sums(dir, &out), entries(&dir.join(&out)), done.stdout)
    });
    lackey.0["name"] = "tracer".into();
    let differs = tracer.1.iter().zip(&lackey.1).position(|(one, other)| one != other);
    assert_eq!(differs.map(|at| (at, tracer.1[at], lackey.1[at])), None, "tracer's entry, and lackey's");
    assert!(tracer == lackey, "{} and {}; {:?} and {:?}", tracer.0, lackey.0, tracer.2, lackey.2);
    tracer.1
}

#[test]
fn both_tools_record_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    std::fs::write(dir.join("program.c"), PROGRAM).unwrap();
    // Without the loader, whose way depends on random bytes that the kernel gives each program.
    let built =
        Command::new("cc").current_dir(dir).args(["-O1", "-static", "-o", "program", "program.c", "-lm"]).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{built:?}");
    let whole = same(dir, &[], &["./program"]);
    assert!(whole.len() > 10_000, "{}", whole.len());
    // An instruction and its accesses are not divided by either.
    for (skip, limit) in [(0, 1), (1, 2), (5000, 333), (20_011, 7), (30_000, 10_001)] {
        same(dir, &["--skip", &skip.to_string(), "--limit", &limit.to_string()], &["./program"]);
    }
}

/// A program that turns into another one, or kills itself, has been recorded up to there.
#[test]
fn the_end_of_a_program_is_recorded() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    for script in ["exec true", "kill -9 $$", "kill -SEGV $$"] {
        let recorded = |tool: &str| -> u64 {
            let done = pagesim(dir, &["record", "--with", tool, "--out", "sh.trace", "--", "sh", "-c", script]);
            assert!(done.status.success(), "{script}: {done:?}");
            sums(dir, "sh.trace")["accesses"].as_u64().unwrap()
        };
        // What the shell does with random bytes differs from run to run.
        let (tracer, lackey) = (recorded("tracer"), recorded("lackey"));
        assert!(tracer.abs_diff(lackey) < 2000, "{script}: {tracer} and {lackey}");
    }
}

#[test]
fn without_a_compiler_lackey_records() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let path = dir.join("path");
    std::fs::create_dir(&path).unwrap();
    for name in ["valgrind", "valgrind.bin"] {
        let program = Path::new("/usr/bin").join(name);
        if program.exists() {
            symlink(program, path.join(name)).unwrap();
        }
    }
    let run = |with: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_trapless-pagesim"))
            .current_dir(dir)
            .env("PATH", &path)
            .args([&["record", "--out", "true.trace"], with, &["--", "/bin/true"]].concat())
            .output()
            .unwrap()
    };
    let done = run(&[]);
    let said = String::from_utf8(done.stderr).unwrap();
    let note = "trapless-pagesim: recording with lackey, which is slower: no C compiler (Debian package gcc): ";
    assert!(done.status.success() && said.starts_with(note) && said.contains("valgrind lackey: /bin/true"), "{said}");
    let done = run(&["--with", "tracer"]);
    let said = String::from_utf8(done.stderr).unwrap();
    let error = "trapless-pagesim: --with tracer: no C compiler (Debian package gcc): ";
    assert!(done.status.code() == Some(2) && said.starts_with(error) && said.lines().count() == 1, "{said}");
}
