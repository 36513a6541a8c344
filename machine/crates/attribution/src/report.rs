// SPDX-License-Identifier: Apache-2.0
//! Writes the attribution to files: profile.json, folded stacks, and one line for each fault, miss and sample of the frames.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::ser::{Serialize, Serializer};
use trapless_memory::Cycle;

use crate::faults::{SPANS, STEPS, Sums};
use crate::log::{MISS_SPANS, MISS_STEPS};
use crate::tree::Cost;
use crate::{Attribution, MISS_KINDS};

/// Values with names, in a fixed order.
#[derive(Clone, Debug)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<T> Named<T> {
    /// The value with this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }
}

/// Cost of something.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Spent {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Misses in caches, TLBs and predictors, if timing was detailed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misses: Option<Named<u64>>,
}

impl From<Cost> for Spent {
    fn from(cost: Cost) -> Spent {
        let named = || Named(MISS_KINDS.iter().map(|k| (*k).to_owned()).zip(cost.misses).collect());
        let misses = cost.misses.iter().any(|n| *n > 0).then(named);
        Spent { cycles: cost.cycles, instructions: cost.instructions, misses }
    }
}

/// Figures of a function, over all its callers.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FunctionLine {
    /// Name of the function.
    pub name: String,
    /// The category of most of its own cycles (without those of functions that it called).
    pub category: String,
    /// How often the function was entered.
    pub calls: u64,
    /// Cost of the function itself.
    #[serde(flatten)]
    pub own: Spent,
    /// Cycles of the function and of everything that it called.
    pub inclusive_cycles: u64,
    /// Instructions of the function and of everything that it called.
    pub inclusive_instructions: u64,
}

/// Figures of a hart, over all windows.
#[derive(Clone, Debug, serde::Serialize)]
pub struct HartLine {
    /// Total cost.
    pub total: Spent,
    /// Cost by category; the categories add up to the total.
    pub categories: Named<Spent>,
}

/// Means over faults.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FaultMeans {
    /// Number of faults.
    pub count: u64,
    /// Mean time from the trap until user code continues, us.
    pub mean_us: f64,
    /// Mean time of each span of this, us.
    pub spans_us: Named<f64>,
    /// Mean cycles for which the task itself ran.
    pub cycles: f64,
    /// Mean instructions that the task itself executed.
    pub instructions: f64,
}

/// A window.
#[derive(Clone, Debug, serde::Serialize)]
pub struct WindowLine {
    /// Number of the region of interest, if the window is one.
    pub region: Option<u64>,
    /// First core cycle.
    pub begin_cycle: u64,
    /// Last core cycle.
    pub end_cycle: u64,
}

/// Content of profile.json.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Version of the format.
    pub schema: u32,
    /// Core clock in hertz.
    pub clock_hz: u64,
    /// The windows that were attributed.
    pub windows: Vec<WindowLine>,
    /// Cost by category, over all harts.
    pub categories: Named<Spent>,
    /// Cost by category of what tasks did in their own page faults.
    pub in_faults: Named<Spent>,
    /// Figures of each hart.
    pub harts: Vec<HartLine>,
    /// Cost by name of the task.
    pub tasks: Named<Spent>,
    /// Page faults that waited for a device.
    pub faults: FaultMeans,
    /// Page faults that did not wait for a device.
    pub minor_faults: FaultMeans,
    /// Figures of each function, sorted by own cycles, the most first.
    pub functions: Vec<FunctionLine>,
    /// Numbers of records that were not kept.
    pub cut: Named<u64>,
}

/// A line of faults.jsonl.
#[derive(serde::Serialize)]
struct FaultLine {
    hart: usize,
    task: String,
    va: String,
    cause: u64,
    lba: Option<u64>,
    cycles: u64,
    instructions: u64,
    times: Named<u64>,
    /// Cycles of each of [`SPANS`].
    spans: Named<u64>,
    slept: Option<u64>,
}

/// A line of misses.jsonl.
#[derive(serde::Serialize)]
struct MissLine {
    hart: Option<usize>,
    task: Option<String>,
    va: String,
    times: Named<u64>,
    /// Cycles of each of [`MISS_SPANS`].
    spans: Named<u64>,
}

/// Time of what happened between each step and the next.
fn spans(names: &[&str], bounds: &[u64]) -> Named<u64> {
    let pairs = bounds.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    Named(names.iter().map(|name| (*name).to_owned()).zip(pairs).collect())
}

impl Attribution {
    /// Content of profile.json.
    pub fn report(&self) -> Report {
        let by_category = |costs: &[Cost]| {
            Named(self.categories.names().iter().cloned().zip(costs.iter().map(|c| Spent::from(*c))).collect())
        };
        let count = self.categories.names().len();
        let mut all = vec![Cost::default(); count];
        for hart in &self.harts {
            all.iter_mut().zip(&hart.spent).for_each(|(sum, c)| *sum += *c);
        }
        let hart = |h: &crate::Followed| HartLine { total: sum(&h.spent).into(), categories: by_category(&h.spent) };
        let cut = |name: &str, n: u64| (name.to_owned(), n);
        Report {
            schema: 1,
            clock_hz: self.clock.0,
            windows: self
                .windows
                .iter()
                .map(|w| WindowLine { region: w.region, begin_cycle: w.from, end_cycle: w.to })
                .collect(),
            categories: by_category(&all),
            in_faults: by_category(&self.in_faults),
            harts: self.harts.iter().map(hart).collect(),
            tasks: self.tasks(),
            faults: self.means(&self.sums),
            minor_faults: self.means(&self.minor),
            functions: self.functions(),
            cut: Named(vec![
                cut("slices", self.log.slices.cut),
                cut("faults", self.log.faults.cut),
                cut("misses", self.log.misses.cut),
                cut("commands", self.log.commands.cut),
            ]),
        }
    }

    fn means(&self, sums: &Sums) -> FaultMeans {
        let mean = |n: u64| if sums.count == 0 { 0.0 } else { n as f64 / sums.count as f64 };
        let us = |cycles: u64| if sums.count == 0 { 0.0 } else { self.clock.micros(Cycle(cycles)) / sums.count as f64 };
        FaultMeans {
            count: sums.count,
            mean_us: us(sums.whole),
            spans_us: Named(SPANS.iter().zip(sums.spans).map(|(name, n)| ((*name).to_owned(), us(n))).collect()),
            cycles: mean(sums.cost.cycles),
            instructions: mean(sums.cost.instructions),
        }
    }

    fn tasks(&self) -> Named<Spent> {
        let totals = self.totals();
        let mut by_name: BTreeMap<String, Cost> = BTreeMap::new();
        for (n, context) in self.contexts.iter().enumerate() {
            *by_name.entry(self.task_name(n)).or_default() += totals[context.stack.root() as usize];
        }
        Named(by_name.into_iter().map(|(name, cost)| (name, cost.into())).collect())
    }

    /// Cost of every node together with all nodes below it.
    fn totals(&self) -> Vec<Cost> {
        let nodes = self.tree.nodes();
        let mut totals: Vec<Cost> = nodes.iter().map(|n| n.cost).collect();
        for n in (0..nodes.len()).rev() {
            let (parent, total) = (nodes[n].parent as usize, totals[n]);
            if parent != n {
                totals[parent] += total;
            }
        }
        totals
    }

    fn functions(&self) -> Vec<FunctionLine> {
        #[derive(Clone, Default)]
        struct Sum {
            calls: u64,
            own: Cost,
            whole: Cost,
            by_category: Vec<u64>,
        }
        let nodes = self.tree.nodes();
        let totals = self.totals();
        let mut sums = vec![Sum::default(); self.symbols.names().len()];
        for (n, node) in nodes.iter().enumerate() {
            if node.parent as usize == n {
                continue;
            }
            let s = &mut sums[node.function.0 as usize];
            s.calls += node.calls;
            s.own += node.cost;
            s.by_category.resize(self.categories.names().len(), 0);
            s.by_category[usize::from(node.category)] += node.cost.cycles;
            // A function that calls itself is counted once.
            let mut up = node.parent;
            while nodes[up as usize].parent != up && nodes[up as usize].function != node.function {
                up = nodes[up as usize].parent;
            }
            if nodes[up as usize].parent == up {
                s.whole += totals[n];
            }
        }
        let line = |(n, s): (usize, &Sum)| {
            let category = s.by_category.iter().enumerate().rev().max_by_key(|(_, cycles)| **cycles)?.0;
            (s.whole != Cost::default()).then(|| FunctionLine {
                name: self.symbols.names()[n].clone(),
                category: self.categories.names()[category].clone(),
                calls: s.calls,
                own: s.own.into(),
                inclusive_cycles: s.whole.cycles,
                inclusive_instructions: s.whole.instructions,
            })
        };
        let mut lines: Vec<FunctionLine> = sums.iter().enumerate().filter_map(line).collect();
        lines.sort_by(|a, b| b.own.cycles.cmp(&a.own.cycles).then_with(|| a.name.cmp(&b.name)));
        lines
    }

    /// Writes the stacks of calls, one per line, with the cycles spent at their ends: `task;caller;callee CYCLES`.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_stacks(&self, out: &mut dyn Write) -> io::Result<()> {
        let nodes = self.tree.nodes();
        let mut paths: Vec<String> = Vec::with_capacity(nodes.len());
        let mut by_path: BTreeMap<String, u64> = BTreeMap::new();
        let roots: BTreeMap<u32, String> = self
            .contexts
            .iter()
            .enumerate()
            .map(|(n, c)| (c.stack.root(), self.task_name(n).replace(';', ":")))
            .collect();
        for (n, node) in nodes.iter().enumerate() {
            let path = match roots.get(&(n as u32)) {
                Some(task) => task.clone(),
                None => format!("{};{}", paths[node.parent as usize], self.symbols.name(node.function)),
            };
            if node.cost.cycles > 0 {
                *by_path.entry(path.clone()).or_default() += node.cost.cycles;
            }
            paths.push(path);
        }
        for (path, cycles) in by_path {
            writeln!(out, "{path} {cycles}")?;
        }
        Ok(())
    }

    /// Writes the page faults that the operating system served, one JSON object per line. Times are in core cycles.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_faults(&self, out: &mut dyn Write) -> io::Result<()> {
        for fault in &self.log.faults.records {
            let times = STEPS.iter().zip(fault.at).filter_map(|(name, at)| Some(((*name).to_owned(), at?))).collect();
            let line = FaultLine {
                hart: fault.hart,
                task: self.task_name(fault.context),
                va: format!("{:#x}", fault.va),
                cause: fault.cause,
                lba: fault.lba,
                cycles: fault.cost.cycles,
                instructions: fault.cost.instructions,
                times: Named(times),
                spans: spans(&SPANS, &fault.bounds()),
                slept: fault.slept,
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes the misses that the SMU served, one JSON object per line. Times are in core cycles.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_misses(&self, out: &mut dyn Write) -> io::Result<()> {
        for (miss, context) in &self.log.misses.records {
            let times = Named(MISS_STEPS.iter().map(|s| (*s).to_owned()).zip(miss.at).collect());
            let line = MissLine {
                hart: miss.hart,
                task: context.map(|c| self.task_name(c)),
                va: format!("{:#x}", miss.va),
                times,
                spans: spans(&MISS_SPANS, &miss.at),
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes where the frames were over time, one JSON object per line.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_frames(&self, out: &mut dyn Write) -> io::Result<()> {
        for sample in self.frames.kept() {
            serde_json::to_writer(&mut *out, sample)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

fn sum(costs: &[Cost]) -> Cost {
    costs.iter().fold(Cost::default(), |mut sum, c| {
        sum += *c;
        sum
    })
}
