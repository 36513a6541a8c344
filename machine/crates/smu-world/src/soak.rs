// SPDX-License-Identifier: Apache-2.0
//! Plays random games with the simulated RTL or with the model, until a game breaks a rule or all games are played.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use trapless_smu::{Smu, SmuConfig, SmuUnit};
use trapless_smu_rtl::{Dice, Memory, RtlSmu};
use trapless_smu_world::disguise::Disguise;
use trapless_smu_world::games::{self, Action};
use trapless_smu_world::{lockstep, sim, steps};

const USAGE: &str = "usage: smu-soak LIBRARY|model [--games N] [--first N] [--longest N] [--lockstep] [--trace FILE]
  LIBRARY    the simulated unit, built with python3 -m rtl.smu.sim.build pmshr=4 prefetch=2
  --games    number of games (default 1000); --first: number of the first game (0); --longest: most actions in a game (200)
  --steps    only print the cycles of each step of a miss
  --lockstep play with the reference model too, and compare both when they are idle
  --trace    write a waveform of the first game, if the library was built with traces";

struct Options {
    library: Option<PathBuf>,
    games: u64,
    first: u64,
    longest: usize,
    lockstep: bool,
    steps: bool,
    trace: Option<PathBuf>,
}

fn options() -> Option<Options> {
    let mut args = std::env::args().skip(1);
    let unit = args.next().filter(|u| !u.starts_with('-'))?;
    let library = (unit != "model").then(|| PathBuf::from(unit));
    let mut o = Options { library, games: 1000, first: 0, longest: 200, lockstep: false, steps: false, trace: None };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--games" => o.games = args.next()?.parse().ok()?,
            "--first" => o.first = args.next()?.parse().ok()?,
            "--longest" => o.longest = args.next()?.parse().ok().filter(|n| *n > 1)?,
            "--steps" => o.steps = true,
            "--lockstep" => o.lockstep = true,
            "--trace" => o.trace = Some(args.next()?.into()),
            _ => return None,
        }
    }
    Some(o)
}

/// Makes the unit for a game. The number of the game selects hints, memory and disguise.
///
/// In lockstep, memory must be fast. The model's accesses take no time, so an access of the RTL that takes longer than a short
/// TIMEOUT would have another outcome.
fn unit(library: Option<&Path>, number: u64, lockstep: bool, trace: Option<&Path>) -> Result<Box<dyn SmuUnit>, String> {
    let mut dice = Dice::new(number);
    let config = SmuConfig { timeout: trapless_memory::Cycle(0), ..sim::config(dice.one_in(2)) };
    let unit: Box<dyn SmuUnit> = match library {
        None => Box::new(Smu::new(config).map_err(|e| e.to_string())?),
        Some(library) => {
            let memory = if lockstep { Memory::default() } else { Memory::by_chance(number) };
            Box::new(RtlSmu::load(library, config, memory, trace).map_err(|e| e.to_string())?)
        }
    };
    Ok(Box::new(Disguise::new(unit, number)))
}

fn play(o: &Options, number: u64, actions: &[Action], trace: Option<&Path>) -> Result<(), String> {
    let unit = || unit(o.library.as_deref(), number, o.lockstep, trace);
    let game = AssertUnwindSafe(|| {
        if o.lockstep { lockstep::play(unit()?, actions) } else { games::play_on(unit()?, actions, number % 3 * 40) }
    });
    catch_unwind(game).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| (*s).into()));
        Err(text.unwrap_or_else(|| "the unit panicked without a message".into()))
    })
}

fn main() -> ExitCode {
    let Some(o) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Err(wrong) = unit(o.library.as_deref(), 0, false, None) {
        eprintln!("{wrong}");
        return ExitCode::from(2);
    }
    if o.steps {
        let unit = o.library.as_deref().map(|l| RtlSmu::load(l, sim::config(true), Memory::default(), None));
        let Some(Ok(unit)) = unit else { return ExitCode::from(2) };
        return match steps::measure(Box::new(unit)) {
            Some(steps) => {
                println!("{steps:#?}");
                ExitCode::SUCCESS
            }
            None => ExitCode::FAILURE,
        };
    }
    std::panic::set_hook(Box::new(|_| {}));
    let (begun, mut actions) = (Instant::now(), 0);
    for number in o.first..o.first + o.games {
        let game = games::game(number, number % 2 == 1, o.longest);
        actions += game.len();
        if let Err(breach) = play(&o, number, &game, o.trace.as_deref().filter(|_| number == o.first)) {
            println!("game {number}, {} actions: {breach}", game.len());
            let short = games::shrink(game, |part| play(&o, number, part, None).is_err());
            let breach = play(&o, number, &short, None).err().unwrap_or_default();
            println!("shortened to {} actions: {short:?}: {breach}", short.len());
            return ExitCode::FAILURE;
        }
    }
    println!("{} games, {actions} actions, no rule broken, {:.1} s", o.games, begun.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
