------------------------------ MODULE Hardware -------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The state; harts and the SMU (spec/isa.md, spec/smu.md). Every action is one access to shared memory, or a critical section
   that looks like one access to everyone but the holder of its lock. *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    None,                           \* a model value: nothing
    HartCount, FrameCount, BlockCount,
    SlotCount,                      \* entries of the PMSHR
    PageCount,                      \* pages of the files, all of them mapped
    TableCount,                     \* page tables that they are spread over
    AreaCount,                      \* areas, that is mappings of a file each, that the tables are spread over
    SpaceCount,                     \* address spaces; the first has the areas that are left over, all below one PUD entry
    DescCount,                      \* descriptors; area n has the one of its number, or the last
    RingDepth,                      \* frames outstanding at most (OS-9)
    Threads,                        \* the operating system's threads that run
    Without,                        \* rules left out, by name
    Stores,                         \* TRUE: harts store, too
    Kernel,                         \* TRUE: the kernel touches the user's pages, too
    Writes,                         \* how often the file is written
    Moves,                          \* how often blocks are freed, taken or moved
    Resets, Removals,               \* how often the controller of descriptor 1 is reset, its namespace removed
    Timeouts,                       \* how often a command times out
    Failures                        \* how often adoption finds no memory

Harts == 1 .. HartCount
Frames == 1 .. FrameCount
Blocks == 1 .. BlockCount
Slots == 1 .. SlotCount
Pages == 1 .. PageCount
Tables == 1 .. TableCount
Areas == 1 .. AreaCount
Spaces == 1 .. SpaceCount
Least(s) == CHOOSE x \in s : \A y \in s : x <= y
TableOf(p) == ((p - 1) % TableCount) + 1
AreaAt(t) == ((t - 1) % AreaCount) + 1
AreaOf(p) == AreaAt(TableOf(p))
SpaceAt(a) == IF a + SpaceCount > AreaCount THEN a + SpaceCount - AreaCount ELSE 1
SpaceOf(p) == SpaceAt(AreaOf(p))
DescOf(p) == Least({AreaOf(p), DescCount})
\* The first area's pages. All areas have misses, faults and adoption. Everything else happens only to the first area: its file
\* is changed, it is unmapped, its controller is reset. The other areas belong to users who have no part in this.
Mine == {p \in Pages : AreaOf(p) = 1}
TablesIn(a) == {t \in Tables : AreaAt(t) = a}
Rule(name) == name \notin Without

Entry(kind, value) == [k |-> kind, v |-> value]
Empty == Entry("empty", None)
Foreign == <<0, 0>>                 \* the bytes of another user's file
Bytes(p, n) == <<p, n>>             \* the bytes of page p after n writes

IdleHart == [st |-> "idle", p |-> None, seen |-> Empty, kernel |-> FALSE]
IdleSlot == [st |-> "idle", p |-> None, seen |-> Empty, f |-> None, w |-> {}]

VARIABLES
    pte, pmd, pud,      \* entries of leaves; marks of the two levels above
    hint,               \* areas: somebody has taken the upper mark, which was for this one, too
    table,              \* FALSE: the page tables of the first area are freed
    hart, tlb,          \* walker of each hart; one translation <<page, frame>>
    slot, cmds,         \* PMSHR; commands at the device, <<slot, frame, block>>
    free, ring, ret,    \* frames: the system's, the free ring, the return ring
    data, disk,         \* bytes of frames and of blocks
    blk, ver,           \* block of each page; how often the page was written
    cache, dirty, busy, \* page cache: frame, dirty, holder of the folio lock
    other,              \* blocks of another user's file
    ctrl,               \* descriptor 1, its controller and namespace, see Controller.tla
    lock,               \* holders of the areas' locks
    dead,               \* the first area is withdrawn for good
    rwsem,              \* holder of the inode's lock
    inval, mmap,        \* writers of invalidate_lock and mmap_lock
    readers,            \* threads that hold both of them shared
    dio,                \* a direct write is under way (hwdp_denied)
    reading,            \* a direct read is under way
    todo,               \* candidates for arming
    unfenced,           \* entries were emptied; their misses may be live
    rearming,           \* holder of the right to re-arm
    pc, work, at, fw,   \* threads: step, pages or tables to do, one of them, fence
    scan,               \* passes of kpted: pages of the table that they have not looked at yet
    found,              \* threads: block looked up, and what else was read before
    failed,             \* passes: adoption found no memory in this table
    must,               \* pages that a sync has promised to adopt
    left                \* budgets

mem == <<pte, pmd, pud, hint, table>>
hw == <<hart, tlb, slot, cmds>>
frames == <<free, ring, ret>>
file == <<disk, blk, ver, other, ctrl>>
pages == <<cache, dirty, busy>>
locks == <<lock, dead, rwsem, inval, mmap, readers, dio, reading, rearming>>
thread == <<pc, work, at, found, scan, failed, must>>
candidates == <<todo, unfenced>>
vars == <<mem, hw, frames, data, file, pages, locks, candidates, thread, fw, left>>

Is(p, kind) == pte[p].k = kind
HasTable(p) == table \/ p \notin Mine
Dead(a) == dead /\ a = 1
Live(s) == slot[s].st \notin {"idle", "quarantine"}
Strange(s) == DescOf(slot[s].p) # 1
Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]
FreeBlocks == Blocks \ ({blk[p] : p \in Pages} \cup other)

Init ==
    /\ blk = [p \in Pages |-> p]
    /\ pte = [p \in Pages |-> Entry("armed", blk[p])]
    /\ pmd = [t \in Tables |-> FALSE] /\ table = TRUE
    /\ pud = [a \in Spaces |-> FALSE] /\ hint = [a \in Areas |-> FALSE]
    /\ hart = [h \in Harts |-> IdleHart] /\ tlb = [h \in Harts |-> None]
    /\ slot = [s \in Slots |-> IdleSlot] /\ cmds = {}
    /\ ring = 1 .. RingDepth
    /\ free = Frames \ ring /\ ret = {}
    /\ data = [f \in Frames |-> Foreign]
    /\ disk = [b \in Blocks |-> IF b \in Pages THEN Bytes(b, 0) ELSE Foreign]
    /\ ver = [p \in Pages |-> 0] /\ other = {}
    /\ cache = [p \in Pages |-> None] /\ dirty = [p \in Pages |-> FALSE]
    /\ busy = [p \in Pages |-> None]
    /\ ctrl = [valid |-> TRUE, live |-> TRUE, up |-> TRUE, owner |-> "ours", gen |-> 0, gone |-> FALSE, queued |-> FALSE]
    /\ lock = [a \in Areas |-> None] /\ dead = FALSE /\ rwsem = None /\ inval = None /\ mmap = None
    /\ readers = {} /\ dio = FALSE /\ rearming = None
    /\ reading \in (IF "reader" \in Threads THEN BOOLEAN ELSE {FALSE})
    /\ todo = {} /\ unfenced = FALSE
    /\ pc = [t \in Threads |-> "idle"] /\ work = [t \in Threads |-> {}]
    /\ at = [t \in Threads |-> None] /\ found = [t \in Threads |-> None]
    /\ fw = [t \in Threads |-> {}] /\ must = {}
    /\ scan = [t \in Threads |-> {}] /\ failed = [t \in Threads |-> FALSE]
    /\ left = [write |-> Writes, move |-> Moves, timeout |-> Timeouts, fail |-> Failures,
               reset |-> Resets, remove |-> Removals]

-----------------------------------------------------------------------------
(* Harts. A walk reads the entry. If the entry is armed, the walk's request carries the value that it saw. *)

Translated(h, p) == tlb[h] # None /\ tlb[h][1] = p
Asks(h, p, kernel) == hart' = [hart EXCEPT ![h] = [st |-> "request", p |-> p, seen |-> pte[p], kernel |-> kernel]]
Faults(h, p) == hart' = [hart EXCEPT ![h] = [IdleHart EXCEPT !.st = "fault", !.p = p]]

Touch(h, p) ==
    /\ hart[h].st = "idle" /\ HasTable(p)
    /\ ~Translated(h, p)
    /\ CASE Is(p, "armed") -> Asks(h, p, FALSE) /\ UNCHANGED tlb
         [] Is(p, "empty") -> Faults(h, p) /\ UNCHANGED tlb
         [] OTHER -> tlb' = [tlb EXCEPT ![h] = <<p, pte[p].v>>] /\ UNCHANGED hart
    /\ UNCHANGED <<mem, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: ISA-3: an access of the kernel, which may hold a spinlock. For this access an armed entry is an ordinary invalid entry. In
\* atomic context the access takes its fixup and changes nothing; otherwise the fault handler runs.
KernelTouch(h, p) ==
    /\ Kernel /\ hart[h].st = "idle" /\ HasTable(p)
    /\ ~Translated(h, p)
    /\ CASE Is(p, "armed") /\ ~Rule("user-mode-only") -> Asks(h, p, TRUE) /\ UNCHANGED tlb
         [] pte[p].k \in {"armed", "empty"} -> (Faults(h, p) \/ UNCHANGED hart) /\ UNCHANGED tlb
         [] OTHER -> tlb' = [tlb EXCEPT ![h] = <<p, pte[p].v>>] /\ UNCHANGED hart
    /\ UNCHANGED <<mem, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: OS-1: a store to a page that is armed or unsynced traps at once.
Store(h, p) ==
    /\ Stores /\ hart[h].st = "idle" /\ HasTable(p) /\ pte[p].k \in {"armed", "unsynced"}
    /\ Faults(h, p)
    /\ UNCHANGED <<mem, tlb, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: ISA-4: an interrupt ends the wait, or withdraws the request, but does not end the miss. There may also be no interrupt.
Interrupt(h) ==
    /\ hart[h].st \in {"request", "wait"}
    /\ hart' = [hart EXCEPT ![h] = IdleHart]
    /\ slot' = [s \in Slots |-> [slot[s] EXCEPT !.w = @ \ {h}]]
    /\ UNCHANGED <<mem, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* A remote fence: no hart keeps a translation, a wait or a request of the first address space.
Flush ==
    LET mine(h) == hart[h].st \in {"request", "wait"} /\ SpaceOf(hart[h].p) = 1 IN
    /\ tlb' = [h \in Harts |-> IF tlb[h] # None /\ SpaceOf(tlb[h][1]) = 1 THEN None ELSE tlb[h]]
    /\ IF Rule("flush-ends-waits")
       THEN /\ hart' = [h \in Harts |-> IF mine(h) THEN IdleHart ELSE hart[h]]
            /\ slot' = [s \in Slots |-> [slot[s] EXCEPT !.w = {h \in @ : ~mine(h)}]]
       ELSE UNCHANGED <<hart, slot>>

-----------------------------------------------------------------------------
(* The SMU. *)

\* REQ: SMU-1: a request joins the live miss of its entry, or takes a free slot. Pages at the same address, of several address
\* spaces, have separate entries.
Accept(h) ==
    LET p == hart[h].p
        alike(q) == q = p \/ (~Rule("join-by-entry") /\ SpaceOf(q) # SpaceOf(p))
        same == {s \in Slots : Live(s) /\ alike(slot[s].p)}
    IN  /\ hart[h].st = "request"
        /\ hart' = [hart EXCEPT ![h].st = "wait", ![h].seen = Empty]
        /\ IF same # {}
           THEN \E s \in same :
                    slot' = IF Rule("answer-every-waiter") THEN [slot EXCEPT ![s].w = @ \cup {h}] ELSE slot
           ELSE LET s == Least({x \in Slots : slot[x].st = "idle"}) IN
                    /\ \E x \in Slots : slot[x].st = "idle"
                    /\ slot' = [slot EXCEPT ![s] = [st |-> "lookup", p |-> p, seen |-> hart[h].seen, f |-> None, w |-> {h}]]
        /\ UNCHANGED <<mem, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: SMU-2: the SMU reads the entry again before anything else. Then it takes a frame and sends a command. The command reads a
\* block of the namespace that the descriptor has (0: of another user's namespace), and is lost if the controller is disabled.
\* REQ: SMU-6: without a valid descriptor the miss fails.
Block(s) == IF Strange(s) \/ ctrl.owner # "theirs" THEN slot[s].seen.v ELSE 0
Lookup(s) ==
    /\ slot[s].st = "lookup"
    /\ IF pte[slot[s].p] # slot[s].seen
       THEN slot' = [slot EXCEPT ![s].st = "changed"] /\ UNCHANGED <<ring, cmds>>
       ELSE IF ~(Strange(s) \/ ctrl.valid)
       THEN slot' = [slot EXCEPT ![s].st = "refused"] /\ UNCHANGED <<ring, cmds>>
       ELSE IF ring = {}
       THEN slot' = [slot EXCEPT ![s].st = "failed"] /\ UNCHANGED <<ring, cmds>>
       ELSE LET f == Least(ring) IN
                /\ ring' = ring \ {f}
                /\ cmds' = IF Strange(s) \/ ctrl.up THEN cmds \cup {<<s, f, Block(s)>>} ELSE cmds
                /\ slot' = [slot EXCEPT ![s].st = "io", ![s].f = f]
    /\ UNCHANGED <<mem, hart, tlb, free, ret, data, file, pages, locks, candidates, thread, fw, left>>

InstallOrder == IF Rule("pte-first") THEN <<"pte", "pmd", "pud">> ELSE <<"pud", "pmd", "pte">>
After(step) == CASE step = InstallOrder[1] -> InstallOrder[2]
                 [] step = InstallOrder[2] -> InstallOrder[3]
                 [] OTHER -> "done"

\* The device writes the frame and completes. In quarantine (SMU-7) the frame is returned.
Complete(c) ==
    LET s == c[1]
        mine == slot[s].f = c[2]
    IN  /\ c \in cmds /\ cmds' = cmds \ {c}
        /\ data' = [data EXCEPT ![c[2]] = IF c[3] = 0 THEN Foreign ELSE disk[c[3]]]
        /\ CASE slot[s].st = "io" /\ mine ->
                  slot' = [slot EXCEPT ![s].st = InstallOrder[1]] /\ UNCHANGED ret
             [] slot[s].st = "quarantine" /\ mine ->
                  slot' = [slot EXCEPT ![s] = IdleSlot] /\ ret' = ret \cup {c[2]}
             [] OTHER -> UNCHANGED <<slot, ret>>
        /\ slot[s].st # "timeout"
        /\ UNCHANGED <<mem, hart, tlb, free, ring, file, pages, locks, candidates, thread, fw, left>>

\* The completion does not come in time. The command may still write its frame.
Timeout(s) ==
    /\ slot[s].st = "io" /\ Spend("timeout")
    /\ slot' = [slot EXCEPT ![s].st = "timeout"]
    /\ UNCHANGED <<mem, hart, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw>>

\* REQ: SMU-3: compare and exchange. SMU-5: a frame that is not installed is returned.
Install(s) ==
    LET p == slot[s].p IN
    /\ slot[s].st = "pte"
    /\ IF pte[p] = slot[s].seen \/ ~Rule("exchange-at-install")
       THEN /\ pte' = [pte EXCEPT ![p] = Entry("unsynced", slot[s].f)]
            /\ slot' = [slot EXCEPT ![s].st = After("pte"), ![s].seen = Empty]
            /\ UNCHANGED ret
       ELSE /\ slot' = [slot EXCEPT ![s].st = "changed", ![s].f = None]
            /\ ret' = IF Rule("return-frame") THEN ret \cup {slot[s].f} ELSE ret
            /\ UNCHANGED pte
    /\ UNCHANGED <<pmd, pud, hint, table, hart, tlb, cmds, free, ring, data, file, pages, locks, candidates, thread, fw, left>>

Mark(s) ==
    /\ slot[s].st \in {"pmd", "pud"}
    /\ slot' = [slot EXCEPT ![s].st = After(slot[s].st)]
    /\ IF slot[s].st = "pmd"
       THEN pmd' = [pmd EXCEPT ![TableOf(slot[s].p)] = TRUE] /\ UNCHANGED pud
       ELSE pud' = [pud EXCEPT ![SpaceOf(slot[s].p)] = TRUE] /\ UNCHANGED pmd
    /\ UNCHANGED <<pte, hint, table, hart, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: SMU-6: each waiter is answered once. A walk continues with the entry in the answer.
Answer(s) ==
    LET st == slot[s].st
        told == slot[s].w
    IN  /\ st \in {"done", "changed", "failed", "refused", "timeout"}
        /\ hart' = [h \in Harts |->
                    IF h \notin told THEN hart[h]
                    ELSE IF st \in {"failed", "refused", "timeout"} THEN [hart[h] EXCEPT !.st = "fault", !.seen = Empty]
                    ELSE IdleHart]
        /\ tlb' = [h \in Harts |-> IF h \in told /\ st = "done" THEN <<hart[h].p, slot[s].f>> ELSE tlb[h]]
        /\ IF st = "timeout" /\ Rule("quarantine")
           THEN /\ slot' = [slot EXCEPT ![s] = [IdleSlot EXCEPT !.st = "quarantine", !.p = slot[s].p, !.f = slot[s].f]]
                /\ UNCHANGED ret
           ELSE /\ slot' = [slot EXCEPT ![s] = IdleSlot]
                /\ ret' = IF st = "timeout" THEN ret \cup {slot[s].f} ELSE ret
        /\ fw' = [t \in Threads |-> fw[t] \ {s}]
        /\ UNCHANGED <<mem, cmds, free, ring, data, file, pages, locks, candidates, thread, left>>

\* REQ: SMU-8: a fence waits for all at its descriptor, the first one, that was accepted before, and for nothing else.
Fence(t) == fw' = [fw EXCEPT ![t] = {s \in Slots : Live(s) /\ (~Strange(s) \/ ~Rule("fence-of-descriptor"))}]
==============================================================================
