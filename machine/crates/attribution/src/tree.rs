// SPDX-License-Identifier: Apache-2.0
//! The tree of calls: the cost of each function, separately for each path of calls that led to it.

use std::collections::HashMap;

use crate::MISS_KINDS;
use crate::categories::{Categories, Category};
use crate::symbols::Function;

/// Cost of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Misses in detailed timing, in the order of [`MISS_KINDS`].
    pub misses: [u64; MISS_KINDS.len()],
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        self.misses.iter_mut().zip(other.misses).for_each(|(sum, n)| *sum += n);
    }
}

impl std::ops::Sub for Cost {
    type Output = Cost;

    fn sub(self, earlier: Cost) -> Cost {
        Cost {
            cycles: self.cycles.saturating_sub(earlier.cycles),
            instructions: self.instructions.saturating_sub(earlier.instructions),
            misses: std::array::from_fn(|i| self.misses[i].saturating_sub(earlier.misses[i])),
        }
    }
}

/// A function, as called on one path.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Number of the caller's node; a root has its own number here.
    pub parent: u32,
    /// The function; meaningless for a root, which represents a task.
    pub function: Function,
    /// Category of its work.
    pub category: Category,
    /// How often it was called from here.
    pub calls: u64,
    /// Cost of the function itself.
    pub cost: Cost,
    /// The child that was looked up last.
    recent: (Function, u32),
}

/// A function that is equal to no other.
const NONE: Function = Function(u32::MAX);

/// The tree of calls, with a root for each task.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    children: HashMap<(u32, Function), u32>,
}

impl Tree {
    /// Maximum number of nodes. When it is reached, a new callee counts as its caller.
    const MOST: usize = 1 << 20;

    /// Adds a root and returns its number.
    pub fn root(&mut self) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: number,
            function: NONE,
            category: Categories::OTHER,
            calls: 0,
            cost: Cost::default(),
            recent: (NONE, 0),
        });
        number
    }

    /// Number of the node of `function` as called by `parent`; adds the node if necessary.
    pub fn child(&mut self, parent: u32, function: Function, categories: &Categories) -> u32 {
        let recent = self.nodes[parent as usize].recent;
        if recent.0 == function {
            return recent.1;
        }
        let known = self.children.get(&(parent, function)).copied();
        if known.is_none() && self.nodes.len() >= Tree::MOST {
            return parent;
        }
        let child = known.unwrap_or_else(|| {
            let number = self.root();
            let category = categories.of(function, self.nodes[parent as usize].category);
            self.nodes[number as usize] = Node { parent, function, category, ..self.nodes[number as usize] };
            self.children.insert((parent, function), number);
            number
        });
        self.nodes[parent as usize].recent = (function, child);
        child
    }

    /// The node with this number.
    pub fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// Adds to the cost of a node.
    pub fn spend(&mut self, number: u32, cost: Cost) {
        self.nodes[number as usize].cost += cost;
    }

    /// Counts a call of a node.
    pub fn called(&mut self, number: u32) {
        self.nodes[number as usize].calls += 1;
    }

    /// All nodes; parents come before their children.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}
