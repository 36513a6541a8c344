------------------------------ MODULE Hardware -------------------------------
(* SPDX-License-Identifier: Apache-2.0 *)
(* The state; harts and the SMU (spec/isa.md, spec/smu.md). Every action is one access to shared memory, or a critical section
   that only the holder of its lock can tell from one. *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    None,                           \* a model value: nothing
    HartCount, FrameCount, BlockCount,
    SlotCount,                      \* entries of the PMSHR
    PageCount,                      \* pages of the file, all of them mapped
    TableCount,                     \* page tables that they are spread over
    RingDepth,                      \* frames outstanding at most (OS-9)
    Threads,                        \* the operating system's threads that run
    Without,                        \* rules left out, by name
    Stores,                         \* TRUE: harts store, too
    Kernel,                         \* TRUE: the kernel touches the user's pages, too
    Strangers,                      \* TRUE: others have a miss at another drive, which does not answer
    Writes,                         \* how often the file is written
    Moves,                          \* how often blocks are freed, taken or moved
    Timeouts,                       \* how often a command times out
    Failures                        \* how often adoption finds no memory

Harts == 1 .. HartCount
Frames == 1 .. FrameCount
Blocks == 1 .. BlockCount
Slots == 1 .. SlotCount
Pages == 1 .. PageCount
Tables == 1 .. TableCount
TableOf(p) == ((p - 1) % TableCount) + 1
Least(s) == CHOOSE x \in s : \A y \in s : x <= y
Rule(name) == name \notin Without

Entry(kind, value) == [k |-> kind, v |-> value]
Empty == Entry("empty", None)
Foreign == <<0, 0>>                 \* the bytes of another user's file
Bytes(p, n) == <<p, n>>             \* the bytes of page p after n writes

IdleHart == [st |-> "idle", p |-> None, seen |-> Empty, kernel |-> FALSE]
IdleSlot == [st |-> "idle", p |-> None, seen |-> Empty, f |-> None, w |-> {}]

VARIABLES
    pte, pmd, pud,      \* entries of leaves; marks of the two levels above
    table,              \* FALSE: the page tables are freed
    hart, tlb,          \* walker of each hart; one translation <<page, frame>>
    slot, cmds,         \* PMSHR; commands at the device, <<slot, frame, block>>
    free, ring, ret,    \* frames: the system's, the free ring, the return ring
    data, disk,         \* bytes of frames and of blocks
    blk, ver,           \* block of each page; how often the page was written
    cache, dirty, busy, \* page cache: frame, dirty, holder of the folio lock
    other,              \* blocks of another user's file
    lock,               \* holder of the area's lock
    dead,               \* the area is withdrawn for good
    rwsem,              \* holder of the inode's lock
    inval, mmap,        \* writers of invalidate_lock and mmap_lock
    readers,            \* threads that hold both of them shared
    dio,                \* a direct write is under way (hwdp_denied)
    todo,               \* candidates for arming
    unfenced,           \* entries were emptied; their misses may be live
    rearming,           \* holder of the right to re-arm
    pc, work, at, fw,   \* threads: step, pages or tables to do, one of them, fence
    scan,               \* pages of the table that kpted has yet to look at
    found,              \* threads: block looked up
    failed,             \* adoption found no memory in this table
    must,               \* pages that a sync has promised to adopt
    left                \* budgets

mem == <<pte, pmd, pud, table>>
hw == <<hart, tlb, slot, cmds>>
frames == <<free, ring, ret>>
file == <<disk, blk, ver, other>>
pages == <<cache, dirty, busy>>
locks == <<lock, dead, rwsem, inval, mmap, readers, dio, rearming>>
thread == <<pc, work, at, found, scan, failed, must>>
candidates == <<todo, unfenced>>
vars == <<mem, hw, frames, data, file, pages, locks, candidates, thread, fw, left>>

Is(p, kind) == pte[p].k = kind
Strange(s) == slot[s].st = "strange"
Live(s) == slot[s].st \notin {"idle", "quarantine", "strange"}
Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]
FreeBlocks == Blocks \ ({blk[p] : p \in Pages} \cup other)

Init ==
    /\ blk = [p \in Pages |-> p]
    /\ pte = [p \in Pages |-> Entry("armed", blk[p])]
    /\ pmd = [t \in Tables |-> FALSE] /\ pud = FALSE /\ table = TRUE
    /\ hart = [h \in Harts |-> IdleHart] /\ tlb = [h \in Harts |-> None]
    /\ slot = [s \in Slots |-> IdleSlot] /\ cmds = {}
    /\ ring = 1 .. RingDepth
    /\ free = Frames \ ring /\ ret = {}
    /\ data = [f \in Frames |-> Foreign]
    /\ disk = [b \in Blocks |-> IF b \in Pages THEN Bytes(b, 0) ELSE Foreign]
    /\ ver = [p \in Pages |-> 0] /\ other = {}
    /\ cache = [p \in Pages |-> None] /\ dirty = [p \in Pages |-> FALSE]
    /\ busy = [p \in Pages |-> None]
    /\ lock = None /\ dead = FALSE /\ rwsem = None /\ inval = None /\ mmap = None
    /\ readers = {} /\ dio = FALSE /\ rearming = None
    /\ todo = {} /\ unfenced = FALSE
    /\ pc = [t \in Threads |-> "idle"] /\ work = [t \in Threads |-> {}]
    /\ at = [t \in Threads |-> None] /\ found = [t \in Threads |-> None]
    /\ fw = [t \in Threads |-> {}] /\ scan = {} /\ failed = FALSE /\ must = {}
    /\ left = [write |-> Writes, move |-> Moves, timeout |-> Timeouts, fail |-> Failures]

-----------------------------------------------------------------------------
(* Harts. A walk reads the entry; what it saw of an armed one is its request. *)

Translated(h, p) == tlb[h] # None /\ tlb[h][1] = p
Asks(h, p, kernel) == hart' = [hart EXCEPT ![h] = [st |-> "request", p |-> p, seen |-> pte[p], kernel |-> kernel]]
Faults(h, p) == hart' = [hart EXCEPT ![h] = [IdleHart EXCEPT !.st = "fault", !.p = p]]

Touch(h, p) ==
    /\ hart[h].st = "idle" /\ table
    /\ ~Translated(h, p)
    /\ CASE Is(p, "armed") -> Asks(h, p, FALSE) /\ UNCHANGED tlb
         [] Is(p, "empty") -> Faults(h, p) /\ UNCHANGED tlb
         [] OTHER -> tlb' = [tlb EXCEPT ![h] = <<p, pte[p].v>>] /\ UNCHANGED hart
    /\ UNCHANGED <<mem, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: ISA-3: the kernel's access, perhaps with a spinlock held: to it an armed entry is an ordinary invalid one. In atomic
\* context it takes its fixup, and nothing has happened; otherwise the fault handler comes.
KernelTouch(h, p) ==
    /\ Kernel /\ hart[h].st = "idle" /\ table
    /\ ~Translated(h, p)
    /\ CASE Is(p, "armed") /\ ~Rule("user-mode-only") -> Asks(h, p, TRUE) /\ UNCHANGED tlb
         [] pte[p].k \in {"armed", "empty"} -> (Faults(h, p) \/ UNCHANGED hart) /\ UNCHANGED tlb
         [] OTHER -> tlb' = [tlb EXCEPT ![h] = <<p, pte[p].v>>] /\ UNCHANGED hart
    /\ UNCHANGED <<mem, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: OS-1: a store to a page that is armed or unsynced traps at once.
Store(h, p) ==
    /\ Stores /\ hart[h].st = "idle" /\ table /\ pte[p].k \in {"armed", "unsynced"}
    /\ Faults(h, p)
    /\ UNCHANGED <<mem, tlb, slot, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: ISA-4: an interrupt ends the wait, or withdraws the request; not the miss. That none comes is possible as well.
Interrupt(h) ==
    /\ hart[h].st \in {"request", "wait"}
    /\ hart' = [hart EXCEPT ![h] = IdleHart]
    /\ slot' = [s \in Slots |-> [slot[s] EXCEPT !.w = @ \ {h}]]
    /\ UNCHANGED <<mem, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* A remote fence: no hart keeps a translation, a wait or a request.
Flush ==
    /\ tlb' = [h \in Harts |-> None]
    /\ IF Rule("flush-ends-waits")
       THEN /\ hart' = [h \in Harts |-> IF hart[h].st \in {"request", "wait"} THEN IdleHart ELSE hart[h]]
            /\ slot' = [s \in Slots |-> [slot[s] EXCEPT !.w = {}]]
       ELSE UNCHANGED <<hart, slot>>

-----------------------------------------------------------------------------
(* The SMU. *)

\* REQ: SMU-1: a request joins the live miss of its entry, or takes a free slot.
Accept(h) ==
    LET p == hart[h].p
        same == {s \in Slots : Live(s) /\ slot[s].p = p}
    IN  /\ hart[h].st = "request"
        /\ hart' = [hart EXCEPT ![h].st = "wait", ![h].seen = Empty]
        /\ IF same # {}
           THEN \E s \in same :
                    slot' = IF Rule("answer-every-waiter") THEN [slot EXCEPT ![s].w = @ \cup {h}] ELSE slot
           ELSE LET s == Least({x \in Slots : slot[x].st = "idle"}) IN
                    /\ \E x \in Slots : slot[x].st = "idle"
                    /\ slot' = [slot EXCEPT ![s] = [st |-> "lookup", p |-> p, seen |-> hart[h].seen, f |-> None, w |-> {h}]]
        /\ UNCHANGED <<mem, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: SMU-2: the entry is read again before anything else; then a frame, a command.
Lookup(s) ==
    /\ slot[s].st = "lookup"
    /\ IF pte[slot[s].p] # slot[s].seen
       THEN slot' = [slot EXCEPT ![s].st = "changed"] /\ UNCHANGED <<ring, cmds>>
       ELSE IF ring = {}
       THEN slot' = [slot EXCEPT ![s].st = "failed"] /\ UNCHANGED <<ring, cmds>>
       ELSE LET f == Least(ring) IN
                /\ ring' = ring \ {f}
                /\ cmds' = cmds \cup {<<s, f, slot[s].seen.v>>}
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
        /\ data' = [data EXCEPT ![c[2]] = disk[c[3]]]
        /\ CASE slot[s].st = "io" /\ mine ->
                  slot' = [slot EXCEPT ![s].st = InstallOrder[1]] /\ UNCHANGED ret
             [] slot[s].st = "quarantine" /\ mine ->
                  slot' = [slot EXCEPT ![s] = IdleSlot] /\ ret' = ret \cup {c[2]}
             [] OTHER -> UNCHANGED <<slot, ret>>
        /\ slot[s].st # "timeout"
        /\ UNCHANGED <<mem, hart, tlb, free, ring, file, pages, locks, candidates, thread, fw, left>>

\* No completion in time. The command may still write its frame.
Timeout(s) ==
    /\ slot[s].st = "io" /\ Spend("timeout")
    /\ slot' = [slot EXCEPT ![s].st = "timeout"]
    /\ UNCHANGED <<mem, hart, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw>>

\* REQ: SMU-3: compare and exchange. SMU-5: what is not installed is returned.
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
    /\ UNCHANGED <<pmd, pud, table, hart, tlb, cmds, free, ring, data, file, pages, locks, candidates, thread, fw, left>>

Mark(s) ==
    /\ slot[s].st \in {"pmd", "pud"}
    /\ slot' = [slot EXCEPT ![s].st = After(slot[s].st)]
    /\ IF slot[s].st = "pmd"
       THEN pmd' = [pmd EXCEPT ![TableOf(slot[s].p)] = TRUE] /\ UNCHANGED pud
       ELSE pud' = TRUE /\ UNCHANGED pmd
    /\ UNCHANGED <<pte, table, hart, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: SMU-6: each waiter is answered once. A walk goes on with the entry it is told.
Answer(s) ==
    LET st == slot[s].st
        told == slot[s].w
    IN  /\ st \in {"done", "changed", "failed", "timeout"}
        /\ hart' = [h \in Harts |->
                    IF h \notin told THEN hart[h]
                    ELSE IF st \in {"failed", "timeout"} THEN [hart[h] EXCEPT !.st = "fault", !.seen = Empty]
                    ELSE IdleHart]
        /\ tlb' = [h \in Harts |-> IF h \in told /\ st = "done" THEN <<slot[s].p, slot[s].f>> ELSE tlb[h]]
        /\ IF st = "timeout" /\ Rule("quarantine")
           THEN slot' = [slot EXCEPT ![s] = [IdleSlot EXCEPT !.st = "quarantine", !.f = slot[s].f]] /\ UNCHANGED ret
           ELSE /\ slot' = [slot EXCEPT ![s] = IdleSlot]
                /\ ret' = IF st = "timeout" THEN ret \cup {slot[s].f} ELSE ret
        /\ fw' = [t \in Threads |-> fw[t] \ {s}]
        /\ UNCHANGED <<mem, cmds, free, ring, data, file, pages, locks, candidates, thread, left>>

\* A miss of other users, in other address spaces, at another drive: nothing of it is seen here but that it takes a place.
Stranger ==
    /\ Strangers /\ ~\E s \in Slots : Strange(s)
    /\ \E s \in Slots : slot[s].st = "idle" /\ slot' = [slot EXCEPT ![s] = [IdleSlot EXCEPT !.st = "strange"]]
    /\ UNCHANGED <<mem, hart, tlb, cmds, frames, data, file, pages, locks, candidates, thread, fw, left>>

\* REQ: SMU-8: a fence waits for all at its descriptor that was accepted before, and for nothing else.
Fence(t) == fw' = [fw EXCEPT ![t] = {s \in Slots : Live(s) \/ (Strange(s) /\ ~Rule("fence-of-descriptor"))}]
==============================================================================
