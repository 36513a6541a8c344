// SPDX-License-Identifier: Apache-2.0
//! The call stack of one task, reconstructed from its jumps.
//!
//! Calls and returns of a task may not match: `longjmp`, tail calls, calls before the task was watched. A return pops frames
//! down to the nearest one that expects its address; if none does, it changes the function of the top frame.

use std::ops::Range;

use crate::categories::Categories;
use crate::symbols::{Function, Symbols};
use crate::tree::Tree;

/// Deepest stack. A deeper one must have been misread, and is cleared.
const DEEPEST: usize = 512;

/// What ends a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// A return to this address.
    Return(u64),
    /// The return from a trap.
    TrapReturn,
    /// Nothing.
    Never,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    node: u32,
    until: Until,
}

/// A task's stack. The top frame is the one that runs.
#[derive(Debug)]
pub struct Stack {
    root: u32,
    frames: Vec<Frame>,
}

/// What the functions of a stack need.
pub struct Reader<'a> {
    /// Categories of new nodes.
    pub categories: &'a Categories,
    /// The tree of calls. A stack is a path in it.
    pub tree: &'a mut Tree,
}

impl Reader<'_> {
    fn child(&mut self, parent: u32, function: Function) -> u32 {
        self.tree.child(parent, function, self.categories)
    }
}

impl Stack {
    /// Creates an empty stack below a root of the tree.
    pub fn new(root: u32) -> Stack {
        Stack { root, frames: Vec::new() }
    }

    /// The node of the top frame.
    pub fn top(&self) -> u32 {
        self.frames.last().map_or(self.root, |f| f.node)
    }

    /// The root with which the stack was created.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Clears the stack: now `function` runs.
    pub fn restart(&mut self, function: Function, r: &mut Reader<'_>) {
        self.frames.clear();
        self.push(function, Until::Never, r);
    }

    /// Clears the stack.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    fn push(&mut self, function: Function, until: Until, r: &mut Reader<'_>) {
        if self.frames.len() >= DEEPEST {
            self.frames.clear();
        }
        let node = r.child(self.top(), function);
        r.tree.called(node);
        self.frames.push(Frame { node, until });
    }

    /// Notes a call of `function`, which should return to `back`.
    pub fn call(&mut self, function: Function, back: u64, r: &mut Reader<'_>) {
        self.push(function, Until::Return(back), r);
    }

    /// A trap begins: `pseudo` is the pseudo function of its kind, and `handler` handles it.
    pub fn trap(&mut self, pseudo: Function, handler: Function, r: &mut Reader<'_>) {
        self.push(pseudo, Until::TrapReturn, r);
        self.push(handler, Until::Never, r);
    }

    /// Notes that the top frame now runs another function.
    pub fn become_function(&mut self, function: Function, r: &mut Reader<'_>) {
        let Some(top) = self.frames.len().checked_sub(1) else { return self.restart(function, r) };
        let node = self.frames[top].node;
        if r.tree.node(node).function == function {
            return;
        }
        let caller = r.tree.node(node).parent;
        let node = r.child(caller, function);
        r.tree.called(node);
        self.frames[top].node = node;
    }

    /// Notes a return to `to`, which is in `function`. Returns false if no frame expected it.
    pub fn ret(&mut self, to: u64, function: Function, r: &mut Reader<'_>) -> bool {
        // Frames below a trap cannot return inside the trap's handler.
        let inside = self.frames.iter().rev().take_while(|f| f.until != Until::TrapReturn).count();
        let first = self.frames.len() - inside;
        let found = self.frames[first..].iter().rposition(|f| f.until == Until::Return(to));
        if let Some(n) = found {
            self.frames.truncate(first + n);
        }
        // The caller may have been entered before calls were watched.
        if self.frames.last().is_some_and(|f| f.until == Until::TrapReturn) {
            self.push(function, Until::Never, r);
        } else {
            self.become_function(function, r);
        }
        found.is_some()
    }

    /// Notes the return from a trap to an address in `function`.
    pub fn trap_return(&mut self, function: Function, r: &mut Reader<'_>) {
        match self.frames.iter().rposition(|f| f.until == Until::TrapReturn) {
            Some(n) => self.frames.truncate(n),
            None => self.frames.clear(),
        }
        self.become_function(function, r);
    }
}

/// Finds functions by address; remembers recent results.
#[derive(Debug)]
pub struct Finder {
    known: Vec<(usize, u64, Function, Range<u64>)>,
}

impl Finder {
    const ENTRIES: usize = 4096;

    /// Creates a finder without results.
    pub fn new() -> Finder {
        Finder { known: vec![(0, u64::MAX, Symbols::UNNAMED, 0..0); Finder::ENTRIES] }
    }

    /// The function at an address, for a task of this space, and the function's range.
    pub fn find(&mut self, space: usize, at: u64, symbols: &Symbols) -> (Function, Range<u64>) {
        let entry = &mut self.known[(at >> 1) as usize % Finder::ENTRIES];
        if (entry.0, entry.1) != (space, at) {
            let (function, range) = symbols.at(space, at);
            *entry = (space, at, function, range);
        }
        (entry.2, entry.3.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        categories: Categories,
        tree: Tree,
        stack: Stack,
    }

    impl World {
        fn new() -> World {
            let symbols = Symbols::new();
            let categories = Categories::load(None, &symbols).unwrap();
            let mut tree = Tree::default();
            let stack = Stack::new(tree.root());
            World { categories, tree, stack }
        }

        fn act(&mut self, act: impl FnOnce(&mut Stack, &mut Reader<'_>)) -> Vec<u32> {
            let World { categories, tree, stack } = self;
            act(stack, &mut Reader { categories, tree });
            let (mut at, mut path) = (self.stack.top(), Vec::new());
            while at != self.stack.root() {
                path.insert(0, self.tree.node(at).function.0);
                at = self.tree.node(at).parent;
            }
            path
        }
    }

    const fn f(n: u32) -> Function {
        Function(100 + n)
    }

    #[test]
    fn calls_and_returns() {
        let mut w = World::new();
        assert_eq!(w.act(|s, r| s.restart(f(0), r)), [100]);
        assert_eq!(w.act(|s, r| s.call(f(1), 0x10, r)), [100, 101]);
        assert_eq!(w.act(|s, r| s.call(f(2), 0x20, r)), [100, 101, 102]);
        assert_eq!(w.act(|s, r| s.become_function(f(3), r)), [100, 101, 103], "a tail call");
        assert_eq!(w.act(|s, r| assert!(s.ret(0x20, f(1), r))), [100, 101]);
        assert_eq!(w.act(|s, r| s.call(f(1), 0x20, r)), [100, 101, 101], "recursion");
        assert_eq!(w.act(|s, r| assert!(s.ret(0x10, f(0), r))), [100], "longjmp over a frame");
    }

    #[test]
    fn a_return_nobody_waits_for_changes_the_top_alone() {
        let mut w = World::new();
        w.act(|s, r| s.restart(f(0), r));
        w.act(|s, r| s.call(f(1), 0x10, r));
        assert_eq!(w.act(|s, r| assert!(!s.ret(0x999, f(5), r))), [100, 105]);
        assert_eq!(w.act(|s, r| assert!(s.ret(0x10, f(0), r))), [100]);
    }

    #[test]
    fn traps_nest_and_keep_apart() {
        let mut w = World::new();
        w.act(|s, r| s.restart(f(0), r));
        w.act(|s, r| s.call(f(1), 0x10, r));
        assert_eq!(w.act(|s, r| s.trap(f(9), f(8), r)), [100, 101, 109, 108]);
        assert_eq!(w.act(|s, r| s.call(f(7), 0x80, r)), [100, 101, 109, 108, 107]);
        assert_eq!(w.act(|s, r| s.trap(f(9), f(8), r)), [100, 101, 109, 108, 107, 109, 108]);
        assert_eq!(w.act(|s, r| assert!(!s.ret(0x10, f(0), r))), [100, 101, 109, 108, 107, 109, 100]);
        assert_eq!(w.act(|s, r| s.trap_return(f(7), r)), [100, 101, 109, 108, 107]);
        assert_eq!(w.act(|s, r| s.trap_return(f(1), r)), [100, 101]);
        assert_eq!(w.act(|s, r| s.trap_return(f(2), r)), [102], "a return from a trap that was not seen");
    }

    #[test]
    fn a_stack_without_end_begins_anew() {
        let mut w = World::new();
        for n in 0..3000 {
            w.act(|s, r| s.call(f(1), n, r));
            assert!(w.stack.frames.len() <= DEEPEST);
        }
    }
}
